"""``launch restart``: restart tasks of a run in place, and wait until they are up again."""

import time
from typing import Callable, List, NamedTuple, Sequence, Tuple

import click

from launch.agent.wire.verb_requests import RestartRequest
from launch.errors import FAILED, SUCCEEDED, UsageError
from launch.history import newest_status
from launch.logs.task_logs import select
from launch.run.follower import by_name
from launch.status.run import ALIVE, ENDED, RunStatus
from launch.status.task import TaskStatus
from launch.target import Target
from launch.verbs.options import OF_RUN, complete_task, with_hosts_file
from launch.view.console import say


class Restarted(NamedTuple):
    """The tasks of a restart: ``up`` and ``pending`` by name, and lines about those that will not come up."""

    up: List[str]
    pending: List[str]
    problems: List[str]


def refusals(status: RunStatus, names: Sequence[str], file: str) -> List[str]:
    """Return the reasons that tasks cannot be restarted; empty where all can.

    ``file`` is the argument of other verbs about the run.
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
    # An evaluator only watches: a run goes on without one that failed.
    return task.state in ALIVE or (task.role, task.state) == ("evaluator", "failed")


def losses(status: RunStatus, names: Sequence[str]) -> List[str]:
    """Return in words what training loses by a restart of ``names``.

    The variables on a ps exist nowhere else.
    """
    tasks, saved = by_name(status), status.checkpoint_step
    if not status.steps or not status.global_step or not any(tasks[name].role == "ps" for name in names):
        return []
    back_to = "step 0, because there is no checkpoint yet" if saved is None else f"the checkpoint of step {saved}"
    return [f"a ps loses its variables: training goes back from step {status.global_step} to {back_to}"]


def compare(before: RunStatus, now: RunStatus, names: Sequence[str]) -> Restarted:
    """Return the progress of the restart of ``names`` between two statuses of one run."""
    if now.run != before.run:
        return Restarted([], [], [f"{before.run} is over, and {now.run} has started since"])
    tasks, earlier, found = by_name(now), by_name(before), Restarted([], [], [])
    for name in names:
        if name not in tasks or name not in earlier:
            found.problems.append(f"{name}: expected a task of {now.run}, found none of this name")
            continue
        task, was = tasks[name], earlier[name]
        anew = task.restarts > was.restarts
        over = now.state in ENDED or task.state not in ALIVE
        if anew and task.state in ("running", "succeeded"):
            found.up.append(name)
        elif over and (anew or task.state != was.state):
            found.problems.append(f"{task.title} {task.state}: {task.cause or now.cause or 'the run is over'}")
        else:
            found.pending.append(name)
    return found


def follow(
    before: RunStatus,
    names: Sequence[str],
    look: Callable[[], RunStatus],
    timeout_s: float,
    pause: Callable[[], None],
    file: str,
) -> Restarted:
    """Wait until every task is up or will not be, at most ``timeout_s``.

    ``look`` returns the newest status, and ``pause`` waits between two looks.
    """
    until = time.monotonic() + timeout_s
    while True:
        found = compare(before, look(), names)
        if not found.pending:
            return found
        if time.monotonic() > until:
            see = f"see `launch logs {file}`"
            late = [f"{name} is not up again within {timeout_s:.0f} s; {see}" for name in found.pending]
            return Restarted(found.up, [], [*found.problems, *late])
        pause()


UP_S = 300.0  # importing TensorFlow on a busy host, finding the others, the first step
LOOK_S = 0.5


@click.command()
@with_hosts_file
@click.argument("patterns", metavar="TASK...", nargs=-1, required=True, shell_complete=complete_task)
@OF_RUN
def restart(target: Target, patterns: Tuple[str, ...]) -> int:
    """Restart tasks of a run in place.

    TASK is worker:1, ps:* or a host. The command returns when the tasks are up again. It counts in
    the task's restarts, not against restart.max. A worker loses nothing. A ps loses its variables:
    training goes back to the last checkpoint, or to step 0 without one.

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
        found = follow(
            before, names, lambda: newest_status(fleet, str(target)), UP_S, lambda: fleet.interrupts.wait(LOOK_S),
            str(target),
        )  # fmt: skip
    say(*(f"{name} is up again" for name in found.up), *found.problems)
    return FAILED if found.problems else SUCCEEDED
