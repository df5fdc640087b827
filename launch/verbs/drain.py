"""``launch drain``: take tasks out of a run or back, and wait until the run trains again."""

import time
from typing import Callable, NamedTuple, Tuple

import click

from launch.agent.wire.verb_requests import DrainRequest
from launch.errors import FAILED, SUCCEEDED, UsageError
from launch.history import newest_status
from launch.logs.task_logs import select
from launch.status.run import ALIVE, ENDED, FormationStatus, RunStatus
from launch.target import Target
from launch.verbs.options import OF_RUN, complete_task, with_hosts_file
from launch.view.console import say


class Changed(NamedTuple):
    """The end of a change: whether the run trains with it, and a line about it."""

    trains: bool
    line: str


def follow(run: str, look: Callable[[], RunStatus], timeout_s: float, pause: Callable[[], None]) -> Changed:
    """Wait until the run trains again, or will not, at most ``timeout_s``.

    ``look`` returns the newest status, and ``pause`` waits between two looks.
    """
    until = time.monotonic() + timeout_s
    while True:
        status = look()
        formation = status.formation
        if status.run != run:
            return Changed(False, f"{run} is over, and {status.run} has started since")
        if status.state in ENDED or formation is None:
            return Changed(False, f"{run} has {status.state}: {status.cause or 'the run is over'}")
        if formation.problem is not None:
            return Changed(False, f"{run} trains as before: {formation.problem}")
        if not (formation.changing or formation.forming) and _trains(status):
            return Changed(True, f"{run} trains on, from step {status.global_step}: {describe(formation)}")
        if time.monotonic() > until:
            return Changed(False, f"{run} does not train after {timeout_s:.0f} s; see `launch status`")
        pause()


def describe(formation: FormationStatus) -> str:
    """Return the tasks of a formation in words."""
    drained = f"; drained: {', '.join(formation.drained)}" if formation.drained else ""
    return f"{formation.tasks}{drained}"


def _trains(status: RunStatus) -> bool:
    return not any(task.state in ALIVE and task.state != "running" for task in status.tasks)


TRAINS_S = 300.0  # loading TensorFlow on a busy host, a save, the first step
LOOK_S = 0.2


@click.command()
@with_hosts_file
@click.argument("patterns", metavar="TASK...", nargs=-1, required=True, shell_complete=complete_task)
@OF_RUN
@click.option("--back", is_flag=True, help="Let these tasks train again; a spare, for the first time.")
def drain(target: Target, patterns: Tuple[str, ...], back: bool) -> int:
    """Take tasks out of a run that trains, or back.

    TASK is ps:1, worker:2 or a host. The run needs the key elastic. New processes load while
    the old ones train. Then the chief saves, and training goes on from that very step, with
    the variables on the ps that are left. The command returns when it does.

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
        found = follow(
            before.run, lambda: newest_status(fleet, str(target)), TRAINS_S, lambda: fleet.interrupts.wait(LOOK_S)
        )
    say(found.line)
    return SUCCEEDED if found.trains else FAILED
