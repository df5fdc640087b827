"""The content of a run's page: JSON values, made of its status in the same words as ``launch status``."""

import math
from typing import Any, Dict, List, Sequence, Tuple

from cluster.protocol.quantity import quantity
from launch.agent.text.plain_text import without_controls
from launch.status import incident_text
from launch.status.incident import IncidentStatus
from launch.status.run import RunStatus
from launch.status.task import TaskStatus
from launch.view import run_text
from launch.view.units import of_duration

LONGEST = 300  # characters of a line of a log
MOST_LINES = 2000  # of all logs together, so that the page stays below 10 MB
FEWEST, MOST = 2, 100  # lines of one task
MOST_FOLLOWED = 20  # consequences of one incident

Points = Sequence[Tuple[int, float]]


def facts(status: RunStatus, points: Points = ()) -> Dict[str, Any]:
    """Return what the page shows of a status.

    Args:
      points: the loss at each step since somebody records it: [(step, loss)].
    """
    return {
        "run": status.run,
        "state": status.state,
        "updated": status.updated,
        "elapsed_s": run_text.elapsed(status),
        "figures": figures(status),
        "step": status.global_step,
        "steps": status.steps,
        "lines": lines(status),
        "cause": status.cause,
        "metrics": [run_text.metric(*each) for each in status.metrics.items()],
        "points": [[step, loss] for step, loss in points if math.isfinite(loss)],
        "copies": copies(status),
        "incidents": [incident(each) for each in status.incidents],
        "tasks": [task(each) for each in status.tasks],
    }


def figures(status: RunStatus) -> List[List[str]]:
    """Return the few numbers that are read first, each a name and a number with its unit."""
    step, elapsed_s, left_s = status.global_step or 0, run_text.elapsed(status), run_text.left(status)
    found = [["step", f"{step}/{status.steps}" if status.steps else f"{step}"]]
    if status.loss is not None:
        found.append(["loss", f"{status.loss:.4g}"])
    if status.steps_per_second:
        found.append(["steps/s", f"{status.steps_per_second:.1f}"])
        found.append(["examples/s", f"{status.examples_per_second or 0:,.0f}"])
    found += [["elapsed", of_duration(elapsed_s)]] if elapsed_s is not None else []
    share = status.effective.share if status.effective else None
    found += [["effective", f"{100 * share:.0f} %"]] if share is not None else []
    return [*found, *([["left, about", of_duration(left_s)]] if left_s is not None else [])]


def lines(status: RunStatus) -> List[str]:
    """Return what else is known of the run in words, a line each; nothing of what has its own place on the page."""
    parts = [*run_text.training_metrics(status), *run_text.checkpoint(status), *run_text.best(status)]
    parts += [f"ended early: {status.ended_early}"] if status.ended_early else []
    parts += [*run_text.formation(status), *run_text.effective(status)]
    if status.evaluation:
        parts.append(run_text.evaluation(status.evaluation))
    starting = run_text.starting(status)
    troubles = [*run_text.slowness(status), *run_text.silence(status), *run_text.hook_problem(status)]
    return [*parts, *([starting] if starting else []), *troubles, *run_text.warnings(status)]


def copies(status: RunStatus) -> List[str]:
    """Return the newest checkpoint and its copies on other hosts, a line each."""
    found = []
    if status.checkpoint_step is not None:
        found.append(f"checkpoint of step {status.checkpoint_step}{f': {status.checkpoint}' * bool(status.checkpoint)}")
    for host, step in status.replicas.items():
        found.append(f"copy on {host}: {'none yet' if step is None else f'step {step}'}")
    return found


def incident(found: IncidentStatus) -> Dict[str, Any]:
    """Return an incident: when it was, how long training stood, and everything that is known in words."""
    details = [f"cause: {found.cause}"] if found.cause else []
    details += [
        f"{each.at_s:.1f} s: {each.title}: {each.cause or each.kind}" for each in found.followed[:MOST_FOLLOWED]
    ]
    more = found.followed_count - min(len(found.followed), MOST_FOLLOWED)
    details += [quantity(more, "more consequence")] if more > 0 else []
    details += [f"{each.at_s:.1f} s: {each.what}" for each in found.did]
    details += [f"log: {found.host}:{found.log}"] if found.log else []
    return {
        "number": found.number,
        "at_s": found.at_s,
        "lasted_s": found.lost_seconds if found.lost_seconds is not None else found.again_s,
        "open": found.open,
        "text": incident_text.sentence(found),
        "details": details,
        "log": [clean(line) for line in found.lines],
    }


def task(found: TaskStatus) -> Dict[str, Any]:
    """Return a task's row."""
    known = found.step_time_ms is not None
    return {
        "name": found.name,
        "host": found.host,
        "state": found.state,
        "doing": found.doing,
        "slow": found.straggler,
        "step": found.step,
        "work_ms": run_text.own_ms(found) if known else None,
        "wait_ms": found.wait_ms,
        "restarts": found.restarts,
        "gpu_percent": found.gpu_percent,
        "cause": found.cause,
    }


def lines_of_each(tasks: int) -> int:
    """Return how many last lines of each task's log the page has room for."""
    return max(FEWEST, min(MOST, MOST_LINES // max(1, tasks)))


def clean(line: str, longest: int = LONGEST) -> str:
    """Return a line of a log as the page shows it: no control characters, and no more than ``longest``."""
    text = without_controls(line)
    return text if len(text) <= longest else text[: longest - 1] + "…"
