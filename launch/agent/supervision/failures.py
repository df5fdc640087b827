"""The failures that count against ``restart.max``: of one task, or of all workers that restart together.

A failure older than ``restart.window_s`` is forgiven. A failure *repeats* the failure before if both have the same
error, apart from numbers and addresses, and nothing has changed in between:

    the task made no progress      the attempt lived for less than ``QUICK_S``, and training took no newer step
    the rest of the run is calm    no host is silent, and no other task, host or GPU has a problem of its own, now or
                                   within ``CALM_S``. An evaluator's problem counts only within ``CALM_S``

A lost connection never counts as a repetition: the other task may be back at the next attempt.
"""

import re
from typing import List, Optional, Sequence

from launch.agent.wire.run_request import TaskPlan
from launch.status.incident_status import IncidentStatus

QUICK_S = 30.0  # an attempt that lived for longer has made progress
CALM_S = 60.0
AGAIN = "; the same error twice, without progress in between, so the task is not restarted"
_CHANGING = re.compile(r"\w*\d\w*")  # words with digits: counts, addresses, names of temporary files


def form(error: str) -> str:
    """Return an error without its numbers and addresses, which differ between attempts."""
    return _CHANGING.sub("#", error)


def is_calm(task: TaskPlan, error: str, incidents: Sequence[IncidentStatus], at_s: float) -> bool:
    """Return whether every recent or open incident belongs to ``task``, or has the same error as ``error``.

    ``at_s`` is the present time, in seconds since the run began.
    """
    recent = [each for each in incidents if at_s - each.at_s <= CALM_S or (each.open and each.role != "evaluator")]
    others = [each for each in recent if (each.role, each.index) != (task.role, task.index)]
    return all(each.error and form(each.error) == form(error) for each in others)


class CountedFailures:
    """The failures of one task, or of all workers that restart together. Times are seconds on any clock."""

    def __init__(self) -> None:
        self._at: List[float] = []
        self._form = ""  # of the newest failure's error; "" where that error cannot repeat
        self._advances = 0

    @property
    def count(self) -> int:
        """Return the number of failures that still count, because they are not forgiven."""
        return len(self._at)

    def forgive(self, now: float, window_s: Optional[float]) -> None:
        """Forget the failures that are more than ``window_s`` old; with None, forget no failure."""
        if window_s is not None:
            self._at = [at for at in self._at if now - at <= window_s]

    def add(self, now: float) -> None:
        """Record a failure after which another attempt follows."""
        self._at.append(now)

    def repeats(self, error: str, advances: int) -> bool:
        """Record the newest failure; return whether the one before had the same error, without progress in between.

        Args:
          error: the error of the newest failure; "" where this error cannot repeat.
          advances: how often training has reached a newer step so far; an unchanged number means no progress.
        """
        before, self._form = (self._form, self._advances), form(error)
        self._advances = advances
        return bool(error) and before == (self._form, advances)
