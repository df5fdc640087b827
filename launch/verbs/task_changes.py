"""``launch restart`` and ``launch drain``: change tasks of a run, and wait until the change has taken effect."""

import time
from typing import Callable, List, NamedTuple, Sequence, Tuple

import click

from launch.agent.wire.verb_requests import DrainRequest, RestartRequest
from launch.errors import FAILED, SUCCEEDED, UsageError
from launch.fleet import Fleet
from launch.history import newest_status
from launch.logs.task_logs import select
from launch.run.follower import by_name
from launch.status.run import ALIVE, ENDED, RunStatus
from launch.status.task import TaskStatus
from launch.target import Target
from launch.verbs.options import OF_RUN, complete_task, with_hosts_file
from launch.view.console import note, say

CHANGES_S = 300.0  # to load TensorFlow on a busy host, connect, save, and train a step
LOOK_S = 0.5
TO_CHANGE = click.argument("patterns", metavar="TASK...", nargs=-1, required=True, shell_complete=complete_task)


class Change(NamedTuple):
    """The progress of a change.

    Attributes:
      done: lines about completed parts of the change.
      pending: the names of tasks or runs that have not changed yet.
      problems: lines about parts of the change that have failed.
    """

    done: List[str]
    pending: List[str]
    problems: List[str]


def follow(look: Callable[[], Change], timeout_s: float, pause: Callable[[], None], late: str) -> Change:
    """Wait until nothing is pending, at most ``timeout_s`` seconds.

    ``look`` returns the change according to the newest status, and ``pause`` waits between two calls of ``look``. After
    ``timeout_s``, the result has a problem for each pending name: the name followed by ``late``.
    """
    until = time.monotonic() + timeout_s
    while True:
        found = look()
        if not found.pending:
            return found
        if time.monotonic() > until:
            lines = [f"{name} {late}" for name in found.pending]
            return Change(found.done, [], [*found.problems, *lines])
        pause()


def _ended(target: Target, fleet: Fleet, compare: Callable[[RunStatus], Change], late: str) -> Change:
    return follow(
        lambda: compare(newest_status(fleet, str(target))), CHANGES_S, lambda: fleet.interrupts.wait(LOOK_S), late
    )


def _reported(ended: Change) -> int:
    """Print the result of a change, and return the exit code."""
    say(*ended.done, *ended.problems)
    return FAILED if ended.problems else SUCCEEDED


def refusals(status: RunStatus, names: Sequence[str], file: str) -> List[str]:
    """Return the reasons why tasks cannot be restarted; empty where all can be restarted.

    ``file`` is the argument with which other verbs find the run.
    """
    if status.state in ENDED:
        return [f"{status.run} has {status.state}; start it with `launch up {file}`"]
    tasks = by_name(status)
    wrong = [
        f"{name}: expected a task of {status.run}, found none of this name" if name not in tasks else
        f"{tasks[name].title}: expected a task that runs, found it {tasks[name].state}"
        for name in names
        if name not in tasks or not _can_restart(tasks[name])
    ]  # fmt: skip
    return wrong


def _can_restart(task: TaskStatus) -> bool:
    # A run continues without an evaluator that failed, so this evaluator can be restarted.
    return task.state in ALIVE or (task.role, task.state) == ("evaluator", "failed")


def losses(status: RunStatus, names: Sequence[str]) -> List[str]:
    """Return a line about the training steps that a restart of ``names`` loses; empty if it loses none.

    The variables on a ps exist nowhere else.
    """
    tasks, saved = by_name(status), status.checkpoint_step
    if not status.steps or not status.global_step or not any(tasks[name].role == "ps" for name in names):
        return []
    back_to = "step 0, because there is no checkpoint yet" if saved is None else f"the checkpoint of step {saved}"
    return [f"a ps loses its variables: training goes back from step {status.global_step} to {back_to}"]


def restarted(before: RunStatus, now: RunStatus, names: Sequence[str]) -> Change:
    """Return the progress of the restart of ``names`` between two statuses of one run."""
    if now.run != before.run:
        return Change([], [], [_other_run(before.run, now)])
    tasks, earlier, found = by_name(now), by_name(before), Change([], [], [])
    for name in names:
        if name not in tasks or name not in earlier:
            found.problems.append(f"{name}: expected a task of {now.run}, found none of this name")
            continue
        task, was = tasks[name], earlier[name]
        anew = task.restarts > was.restarts
        over = now.state in ENDED or task.state not in ALIVE
        if anew and task.state in ("running", "succeeded"):
            found.done.append(f"{name} is up again")
        elif over and (anew or task.state != was.state):
            found.problems.append(f"{task.title} {task.state}: {task.cause or now.cause or 'the run is over'}")
        else:
            found.pending.append(name)
    return found


def _other_run(run: str, now: RunStatus) -> str:
    return f"{run} is over, and {now.run} has started since"


@click.command()
@with_hosts_file
@TO_CHANGE
@OF_RUN
def restart(target: Target, patterns: Tuple[str, ...]) -> int:
    """Restart tasks of a run in place.

    TASK is worker:1, ps:* or a host. The command returns when the tasks are up again. Such a
    restart counts in the task's restarts, but not against restart.max. A worker loses nothing. A ps loses its
    variables: training goes back to the last checkpoint, or to step 0 without a checkpoint.

    \b
    Example:  launch restart hosts.yaml worker:1
    """
    with target.reach() as fleet:
        before = newest_status(fleet, str(target))
        names = [task.name for task in select(fleet.tasks, patterns)]
        wrong = refusals(before, names, str(target))
        if wrong:
            raise UsageError("\n".join(wrong))
        say(*losses(before, names))
        fleet.ask_lead("restart", RestartRequest(fleet.reference(fleet.lead), tuple(names)))
        late = f"is not up again within {CHANGES_S:.0f} s; see `launch logs {target}`"
        ended = _ended(target, fleet, lambda now: restarted(before, now, names), late)
    return _reported(ended)


def drained(run: str, now: RunStatus) -> Change:
    """Return the progress of a drain, also with ``--back``: done once the run ``run`` trains with the changed tasks."""
    formation = now.formation
    if now.run != run:
        return Change([], [], [_other_run(run, now)])
    if now.state in ENDED or formation is None:
        return Change([], [], [f"{run} has {now.state}: {now.cause or 'the run is over'}"])
    if formation.problem is not None:
        return Change([], [], [f"{run} trains as before: {formation.problem}"])
    if formation.changing or formation.forming or not _trains(now):
        return Change([], [run], [])
    left_out = f"; drained: {', '.join(formation.drained)}" if formation.drained else ""
    return Change([f"{run} continues to train, from step {now.global_step}: {formation.tasks}{left_out}"], [], [])


class Phases:
    """Prints each phase of a drain once, because a drain may take minutes."""

    def __init__(self, run: str) -> None:
        self._run, self._printed = run, ""

    def look(self, now: RunStatus) -> RunStatus:
        """Print the phase of ``now`` if it is a new one, and return ``now``."""
        phase = _phase(now) if now.run == self._run else ""
        if phase not in ("", self._printed):
            note(f"step {now.global_step or 0}: {phase}")
            self._printed = phase
        return now


def _phase(now: RunStatus) -> str:
    if now.formation is None or now.state in ENDED or now.formation.problem is not None:
        return ""
    if now.formation.changing:
        return "the next processes load, and the present ones train"
    if now.formation.forming:
        return "the present processes end"
    return "" if _trains(now) else "the next processes start"


def _trains(status: RunStatus) -> bool:
    return not any(task.state in ALIVE and task.state != "running" for task in status.tasks)


@click.command()
@with_hosts_file
@TO_CHANGE
@OF_RUN
@click.option("--back", is_flag=True, help="Let these tasks train again; a spare, for the first time.")
def drain(target: Target, patterns: Tuple[str, ...], back: bool) -> int:
    """Take tasks out of a run that trains, or put them back.

    TASK is ps:1, worker:2 or a host. The run needs the key elastic. New processes load while
    the old ones train. Then the chief saves a checkpoint, and training continues from exactly
    that step, with the variables on the ps that are left. The command returns when training has continued.

    \b
    Example:  launch drain hosts.yaml cpu02
              launch drain hosts.yaml --back cpu02
    """
    with target.reach() as fleet:
        before = newest_status(fleet, str(target))
        names = [task.name for task in select(fleet.tasks, patterns)]
        answer = fleet.ask_lead("drain", DrainRequest(fleet.reference(fleet.lead), tuple(names), back))
        if answer["wrong"]:
            raise UsageError("\n".join(f"{before.run}: {each}" for each in answer["wrong"]))
        late = f"does not train after {CHANGES_S:.0f} s; see `launch status`"
        phases = Phases(before.run)
        ended = _ended(target, fleet, lambda now: drained(before.run, phases.look(now)), late)
    return _reported(ended)
