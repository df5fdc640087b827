"""What the workers' own lines of progress say about the time of a step."""

import re
from typing import Dict, NamedTuple, Optional

_LINE = re.compile(r"step (\d+)/\d+\b")  # as a worker of this project prints it, and the textbook's script


class Stamp(NamedTuple):
    """A worker told at ``at_s`` (of time.monotonic()) that it had taken ``step`` steps."""

    at_s: float
    step: int


def step_of(line: str) -> Optional[int]:
    """The step that a line of a worker's log tells, None for any other line."""
    found = _LINE.match(line)
    return int(found[1]) if found else None


class Window:
    """Which of the chief's stamps a measurement begins and ends with.

    It begins ``warm`` of the chief's steps after every worker has told of one, since a step of fewer workers is
    another matter, and ends with the first stamp after both ``seconds`` and ``steps``. ``first`` and ``last`` are None
    until then.
    """

    def __init__(self, workers: int, warm: int, seconds: float, steps: int):
        self.first: Optional[Stamp] = None
        self.last: Optional[Stamp] = None
        self._workers, self._warm, self._seconds, self._steps = workers, warm, seconds, steps
        self._joined: Dict[int, Stamp] = {}
        self._warm_at: Optional[int] = None

    def told(self, worker: int, stamp: Stamp) -> bool:
        """Takes one stamp; returns whether the window began or ended with it. Worker 0 is the chief."""
        self._joined.setdefault(worker, stamp)
        if worker or len(self._joined) < self._workers or self.last:
            return False
        if self._warm_at is None:
            self._warm_at = stamp.step + self._warm
        if self.first is None and stamp.step >= self._warm_at:
            self.first = stamp
            return True
        if self.first and stamp.at_s - self.first.at_s >= self._seconds and stamp.step - self.first.step >= self._steps:
            self.last = stamp
            return True
        return False

    @property
    def joined_at_s(self) -> float:
        """When every worker had told of a step; available once the window has begun."""
        return max(stamp.at_s for stamp in self._joined.values())

    @property
    def steps(self) -> int:
        """Between the first stamp and the last; available after the end."""
        return self.last.step - self.first.step if self.first and self.last else 0

    @property
    def seconds(self) -> float:
        """Between the first stamp and the last; available after the end."""
        return self.last.at_s - self.first.at_s if self.first and self.last else 0.0
