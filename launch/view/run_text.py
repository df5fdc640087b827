"""The parts of a run's status in words, one line each."""

from collections import Counter
from datetime import datetime
from typing import Callable, Dict, List, Mapping, Optional, Union

from cluster.protocol.quantity import quantity
from cluster.task import TRAINERS
from launch.status.run import ENDED, RunRecord, RunStatus, quiet_tasks
from launch.status.task import QuietStatus, TaskStatus
from launch.view.console import fold, of_duration

MOST_NAMED = 3
LEAST_LOST_S = 0.1
MOST_METRICS = 12  # in a line
LONGEST_LINE = 120  # characters of a log's line
ABSENT = "-"  # in the place of a value that does not exist


def head(status: RunStatus) -> str:
    """Return the first line about a run: ``digits-20261121-100210  running  1:23, about 2:10 left``."""
    parts = [f"{status.run}  {status.state}"]
    elapsed_s = elapsed(status)
    if elapsed_s is not None:
        left_s = left(status)
        after = "after " if status.state in ENDED else ""
        parts.append(after + of_duration(elapsed_s) + (f", about {of_duration(left_s)} left" if left_s else ""))
    return "  ".join(parts)


def amount(value: Optional[float]) -> str:
    """Return a loss or another number in four digits."""
    return ABSENT if value is None else f"{value:.4g}"


def step_of(step: Optional[int], steps: Optional[int]) -> str:
    """Return a step and the last step as ``120/2000``; only the step where the last step is not known."""
    return ABSENT if step is None else f"{step}/{steps}" if steps else f"{step}"


def elapsed(status: Union[RunStatus, RunRecord]) -> Optional[float]:
    """Return the seconds from the start of the run to its end or to this status; None where they are unknown."""
    until = status.ended or status.updated
    if status.started is None or until is None:
        return None
    try:
        began, ended = (_moment(text) for text in (status.started, until))
    except ValueError:  # a host has sent another text
        return None
    return max(0.0, (ended - began).total_seconds())


def _moment(text: str) -> datetime:
    """Return a time of a status as a datetime, in UTC. Raises ValueError."""
    return datetime.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")


def explains(status: RunStatus, task: TaskStatus) -> bool:
    """Return whether the cause of the run contains the cause of ``task``."""
    return bool(task.cause) and (task.cause or "") in (status.cause or "")


def left(status: RunStatus) -> Optional[float]:
    """Return the remaining seconds at the recent rate; None where the rate is unknown or no step is left."""
    if status.state != "running" or not status.steps or status.global_step is None or not status.steps_per_second:
        return None
    return max(0, status.steps - status.global_step) / status.steps_per_second or None


def progress(status: RunStatus) -> str:
    """Return a run's progress in words: ``step 840/2000 (42 %), 31.2 steps/s, 3994 examples/s, loss 0.21``.

    Asynchronous workers may take a few steps beyond ``steps``, the last step of the run.
    """
    step, steps = status.global_step or 0, status.steps
    parts = [f"step {step}" if not steps else f"step {step}/{steps} ({min(100, 100 * step // steps)} %)"]
    if status.steps_per_second:
        parts.append(f"{status.steps_per_second:.1f} steps/s")
    if status.steps_per_second and status.examples_per_second:  # some programs report no examples
        parts.append(f"{status.examples_per_second:.0f} examples/s")
    if status.loss is not None:
        parts.append(f"loss {status.loss:.4g}")
    return ", ".join(parts)


def checkpoint(status: RunStatus) -> List[str]:
    """Return a line with the newest checkpoint and its age; empty before the first checkpoint, and after the end."""
    if status.checkpoint_step is None or status.state in ENDED:
        return []
    steps = max(0, (status.global_step or 0) - status.checkpoint_step)
    age = f", about {of_duration(steps / status.steps_per_second)}" if steps and status.steps_per_second else ""
    return [f"checkpoint of step {status.checkpoint_step}, {quantity(steps, 'step')} ago{age}"]


def training_metrics(status: RunStatus) -> List[str]:
    """Return a line with the metrics of the newest training examples; empty where the model has no metrics."""
    return [f"while training: {_listed(status.training_metrics)}"] if status.training_metrics else []


def best(status: RunStatus) -> List[str]:
    """Return a line with the best checkpoint: ``best checkpoint: step 800, auc 0.8123``; empty before the first."""
    found = dict(status.best or {})
    step = found.pop("step", None)
    return [] if step is None else [f"best checkpoint: step {step:.0f}, {_listed(found)}"]


def metrics(status: RunStatus) -> List[str]:
    """Return a line with the metrics on the held-out data, at the end of a run."""
    return [f"held-out data: {_listed(status.metrics)}"] if status.metrics else []


def _listed(metrics: Mapping[str, Optional[float]]) -> str:
    """Return metrics in one line, with as many metrics of slices as the line has room for."""
    listed = [metric(*each) for each in metrics.items()]
    more = len(listed) - MOST_METRICS
    return ", ".join(listed if more < 2 else [*listed[:MOST_METRICS], f"and {more} more (launch status --json)"])


def metric(name: str, value: Optional[float]) -> str:
    """Return a metric as text: ``accuracy 97.6 %``, ``loss 0.0812``, ``auc undefined``."""
    if value is None:
        return f"{name} undefined"
    return f"{name} {100 * value:.1f} %" if name.endswith("accuracy") else f"{name} {value:.4g}"


def evaluation(status: RunStatus) -> List[str]:
    """Return a line with the evaluator's newest report; empty before the first report.

    Example: ``evaluator: step 800, loss 0.0812, accuracy 97.6 %``.
    """
    found = dict(status.evaluation or {})
    step = found.pop("step", None)
    where = "an unknown step" if step is None else f"step {step:.0f}"
    return [f"evaluator: {where}, {_listed(found)}"] if status.evaluation else []


def formation(status: RunStatus) -> List[str]:
    """Return a run's formation in one line; empty while the formation is the first one and complete.

    Example: ``formation 2: 3 of 4 workers, 2 of 2 ps; without gpu03``.
    """
    formed = status.formation
    if not formed or not (formed.number or formed.without or formed.forming):
        return []
    without = f"; without {', '.join(formed.without)}" if formed.without else ""
    forming = "; ending before the next formation" if formed.forming else ""
    return [f"formation {formed.number}: {formed.tasks}{without}{forming}"]


def effective(status: RunStatus) -> List[str]:
    """Return a line with the effective training time, and the parts of the other time.

    Example: ``87 % effective: 1:27 of 1:40; start 6.1 s, standing 4.0 s, saving 2.9 s``.
    """
    found = status.effective
    if found is None or found.share is None:
        return []
    parts = [(name.replace("_", " "), seconds) for name, seconds in found.lost.items() if seconds >= LEAST_LOST_S]
    lost = ", ".join(f"{name} {of_duration(seconds)}" for name, seconds in parts)
    used = f"{of_duration(found.seconds)} of {of_duration(found.of_seconds)}"
    return [f"{100 * found.share:.0f} % effective: {used}{f'; {lost}' * bool(lost)}"]


def starting(status: RunStatus) -> List[str]:
    """Return a line with the activities of starting tasks, the most common first; empty if no task starts.

    Example: ``builds its graph: worker:0, worker:1; loads TensorFlow: ps:0``.
    """
    doing: Dict[str, List[str]] = {}
    for task in status.tasks:
        if task.doing:
            doing.setdefault(task.doing, []).append(task.name)
    common = sorted(doing, key=lambda what: -len(doing[what]))
    return ["; ".join(f"{what}: {_some(doing[what])}" for what in common)] if doing else []


def _some(names: List[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names) if more < 2 else f"{', '.join(names[:MOST_NAMED])} and {more} more"


def count(status: RunStatus) -> str:
    """Return the number of tasks in each state: ``3 running, 1 restarting``."""
    return ", ".join(f"{number} {state}" for state, number in Counter(t.state for t in status.tasks).items())


def slowness(status: RunStatus) -> List[str]:
    """Return a line about the slow tasks; empty where no task is slow.

    Example: ``slow: worker:3@gpu02 45.2 ms of own work per step; the other workers wait 31 % of each step``.
    """
    slow = [task for task in status.tasks if task.straggler]
    if not slow:
        return []
    if status.waiting_share is None:  # of a program under ``command:``
        return [f"slow: {', '.join(task.title for task in slow)}: fewer examples per second than the other workers"]
    each = ", ".join(f"{task.title} {task.own_ms:.1f} ms" for task in slow)
    share = 100 * (status.waiting_share or 0.0)
    return [f"slow: {each} of own work per step; the other workers wait {share:.0f} % of each step"]


def quietness(status: RunStatus) -> List[str]:
    """Return a line for each worker that does nothing, in the order of their standstills, and a line with all others.

    Example: ``quiet for 5:10: worker:1@gpu02, in train.py:31 (main), last line 5:12 ago: step 840``.
    """
    if status.state == "succeeded":
        return []
    found = quiet_tasks(status)
    shown = [task for task in found if task.role in TRAINERS][:MOST_NAMED] or found[:MOST_NAMED]
    rest = [task.name for task in found if task not in shown]
    return [*(_quiet(task, status) for task in shown), *([f"also quiet: {_some(rest)}"] if rest else [])]


def _quiet(task: TaskStatus, status: RunStatus) -> str:
    quiet, now_s = task.quiet or QuietStatus(), elapsed(status) or 0.0
    was, for_s = "was " if status.state in ENDED else "", of_duration(max(0.0, now_s - quiet.at_s))
    where = f", {quiet.where}" if quiet.where else ""
    if quiet.line is None or quiet.line_at_s is None:
        return f"{was}quiet for {for_s}: {task.title}{where}, no line yet"
    line = quiet.line if len(quiet.line) <= LONGEST_LINE else quiet.line[: LONGEST_LINE - 1] + "…"
    return f"{was}quiet for {for_s}: {task.title}{where}, last line {of_duration(now_s - quiet.line_at_s)} ago: {line}"


def remaining(status: RunStatus) -> List[str]:
    """Return a line with the workers that have not ended after another worker has exited with code 0.

    Example: ``worker:0 left with exit code 0, 3:20 ago; still there: worker:1, worker:2``.
    """
    found = status.remaining
    if found is None:
        return []
    ago = of_duration(max(0.0, (elapsed(status) or 0.0) - found.at_s))
    return [f"{_some(found.left)} left with exit code 0, {ago} ago; still there: {_some(found.tasks)}"]


def silence(status: RunStatus) -> List[str]:
    """Return a line with the hosts whose agents now send nothing to the lead.

    A run that has ended has no such line.
    """
    silent = status.silent
    return [f"no messages now from {fold(silent)}"] if silent and status.state not in ENDED else []


def warnings(status: RunStatus) -> List[str]:
    """Return a line for each mistake in the job that does not end the run."""
    return [f"warning: {text}" for text in status.warnings]


def hook_problem(status: RunStatus) -> List[str]:
    """Return a line with the newest problem of an event receiver; empty without a problem."""
    return [f"hook {status.hook_problem}"] if status.hook_problem else []


NEWS: Mapping[str, Callable[[RunStatus], List[str]]] = {"remaining": remaining, "hook_problem": hook_problem}
# by the field of the status: the lines are news when the field has changed


def troubles(status: RunStatus) -> List[str]:
    """Return the lines that every view of a run shows."""
    news = [line for lines in NEWS.values() for line in lines(status)]
    return [*quietness(status), *news, *warnings(status)]
