"""The times at which the lines of a log were written, derived from the log's size at every second.

The log itself has no times: a task writes straight into its log, so that nothing is between the task and the disk.
Beside the log, in ``attempt_0.log.times``, the task's agent writes the log's size as ``TIME SIZE``: one line a second
while the log grows. A line that begins at byte p was there by the first time whose size is beyond p.
"""

import contextlib
import os
import time
from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import Callable, List

from cluster.protocol.regular_file import open_to_append, open_to_read
from launch.agent.state.log import say_once

EVERY_S = 1.0
PIECE = 1 << 20  # bytes of an index that are read at once
LONGEST = 100  # bytes of a line that says anything


def index_of(log: Path) -> Path:
    """Return the path of the file with a log's times."""
    return log.with_name(f"{log.name}.times")


class LogTimes:
    """Write the times of one log; ``clock`` returns the time of day."""

    def __init__(self, log: Path, clock: Callable[[], float] = time.time):
        self._log, self._clock = log, clock
        self._size, self._look_at = 0, 0.0

    def note(self, now: float, at_once: bool = False) -> None:
        """Notes the log's size if it has grown; looks every ``EVERY_S``, or ``at_once``."""
        if now < self._look_at and not at_once:
            return
        self._look_at = now + EVERY_S
        try:
            size = os.path.getsize(str(self._log))
            if size != self._size:
                self._size = size
                with open_to_append(index_of(self._log)) as index:
                    index.write(f"{self._clock():.1f} {size}\n".encode())
        except OSError as error:
            say_once(f"the times of {self._log} are not kept: {error.strerror}")


class Times:
    """Reads the times of one log, which may still grow."""

    def __init__(self, log: Path):
        self._log, self._read = log, 0
        self._times: List[float] = []
        self._sizes: List[int] = []

    def update(self) -> None:
        """Read the times that were written since the last update."""
        try:
            with open_to_read(index_of(self._log)) as index:
                index.seek(self._read)
                while self._take(index.read(PIECE)):
                    index.seek(self._read)
        except OSError:  # there is none, or something else that a task has made of it
            return

    def _take(self, noted: bytes) -> bool:
        """Take whole lines; return whether there were any.

        The method skips a line that is not a time and a size.
        """
        whole = noted[: noted.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            with contextlib.suppress(ValueError):
                moment, size = line[:LONGEST].split()
                noted_at, noted_size = float(moment), int(size)
                self._times.append(noted_at)
                self._sizes.append(noted_size)
        return bool(whole)

    def time_of(self, offset: int) -> float:
        """Return the time at which the byte at ``offset`` was there.

        A byte beyond every noted size is as old as the log's last change.
        """
        entry = bisect_right(self._sizes, offset)
        return self._times[entry] if entry < len(self._times) else self._log.stat().st_mtime

    def written_before(self, moment: float) -> int:
        """Return the number of bytes that were there before this time of day."""
        entry = bisect_left(self._times, moment)
        return self._sizes[entry - 1] if entry else 0
