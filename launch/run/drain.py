"""Wait until a run trains again after a change of its tasks."""

import time
from typing import Callable, NamedTuple

from launch.status.run import FormationStatus, RunStatus
from launch.status.states import ALIVE, ENDED


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
