"""The log of an attempt: the times of its lines, and the limit on its size.

A task writes directly into its log, with no process between the task and the disk. So the log itself has no times. The
agent writes the log's size to ``attempt_0.log.times`` next to the log, as ``TIME SIZE``: one line a second while the
log grows. A line that begins at byte p was written by the first time with a size above p.

A task holds its log open, so another file could not replace the log without a loss of lines. Instead, a log above its
limit keeps its first and its newest bytes, and the kernel frees the blocks between. The log keeps its length, and the
freed part, the gap, reads as zeros. Every line keeps its offset, as the times and each reader require. The agent first
writes the ends of the gap to ``attempt_0.log.gap``, as ``BEGIN END``. Both are beginnings of lines, if lines begin
nearby.
"""

import contextlib
import ctypes
import os
import time
from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import Callable, List, NamedTuple, Optional

from cluster.protocol.shared_files import open_to_append, open_to_read, read_at_most, replace_file
from launch.agent.state.log import say_once

EVERY_S = 1.0
TIMES_PIECE = 1 << 20  # bytes of an index that are read at once
LONGEST_TIME = 100  # bytes of a valid line


def index_of(log: Path) -> Path:
    """Return the path of the file with a log's times."""
    return log.with_name(f"{log.name}.times")


class LogTimes:
    """A writer of the times of one log's lines; ``clock`` returns Unix time."""

    def __init__(self, log: Path, clock: Callable[[], float] = time.time):
        self._log, self._clock = log, clock
        self._size, self._look_at = 0, 0.0

    def note(self, now: float, at_once: bool = False) -> None:
        """Record the log's size if the log has grown.

        The method checks the log at most once every ``EVERY_S``; with ``at_once`` it always checks.
        """
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
            say_once(f"the times of {self._log} are not recorded: {error.strerror}")


class Times:
    """A reader of the times of one log's lines; the log may still grow."""

    def __init__(self, log: Path):
        self._log, self._read = log, 0
        self._times: List[float] = []
        self._sizes: List[int] = []

    def update(self) -> None:
        """Read the times that were written since the last update."""
        try:
            with open_to_read(index_of(self._log)) as index:
                index.seek(self._read)
                while self._take(index.read(TIMES_PIECE)):
                    index.seek(self._read)
        except OSError:  # missing, or replaced by the task
            return

    def _take(self, noted: bytes) -> bool:
        """Parse the whole lines; return whether any exist.

        The method skips a line that is not a time and a size.
        """
        whole = noted[: noted.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            with contextlib.suppress(ValueError):
                moment, size = line[:LONGEST_TIME].split()
                noted_at, noted_size = float(moment), int(size)
                self._times.append(noted_at)
                self._sizes.append(noted_size)
        return bool(whole)

    def time_of(self, offset: int) -> float:
        """Return the Unix time by which the byte at ``offset`` was written.

        For a byte beyond every recorded size, the result is the time of the log's last change.
        """
        entry = bisect_right(self._sizes, offset)
        return self._times[entry] if entry < len(self._times) else self._log.stat().st_mtime

    def written_before(self, moment: float) -> int:
        """Return the number of the log's bytes that were written before this Unix time."""
        entry = bisect_left(self._times, moment)
        return self._sizes[entry - 1] if entry else 0


_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # modes of fallocate(2)
_libc = ctypes.CDLL(None, use_errno=True)


def punch(handle: int, begin: int, end: int) -> None:
    """Free the bytes from ``begin`` up to ``end`` of an open file.

    Raises:
      OSError: the bytes cannot be freed, or the file system does not support this.
    """
    fallocate = getattr(_libc, "fallocate64", _libc.fallocate)  # its offsets have 64 bits everywhere
    if fallocate(handle, _KEEP_SIZE | _PUNCH_HOLE, ctypes.c_int64(begin), ctypes.c_int64(end - begin)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


FIRST, NEWEST = 16 << 20, 240 << 20  # bytes that a log keeps
STEP = 16 << 20  # bytes by which a gap grows, at least
BOUND_S = 5.0
NEARBY = 1 << 16  # bytes to search for the beginning of a line
GONE = "({} MiB of this log are gone from here: a log keeps its first {} MiB and its newest {} MiB)"


class LogGap(NamedTuple):
    """The freed part of a log, from the offset ``begin`` up to ``end``."""

    begin: int
    end: int

    def holds(self, offset: int) -> bool:
        """Return whether the byte at an offset is freed."""
        return self.begin <= offset < self.end

    @property
    def line(self) -> str:
        """Return the line that readers show in place of the gap."""
        return GONE.format((self.end - self.begin) >> 20, FIRST >> 20, NEWEST >> 20)


NO_GAP = LogGap(0, 0)


def gap_file_of(log: Path) -> Path:
    """Return the path of the file that records a log's gap."""
    return log.with_name(f"{log.name}.gap")


def gap_of(log: Path) -> LogGap:
    """Return the gap of a log; ``NO_GAP`` if the log is complete."""
    try:
        begin, end = map(int, read_at_most(gap_file_of(log), 100).split())
    except (OSError, ValueError):  # missing, or replaced by the task
        return NO_GAP
    return LogGap(begin, end) if 0 <= begin < end else NO_GAP


class LogBound:
    """A limit on the size of one log, which is enforced while its task writes."""

    def __init__(self, log: Path, first: int = FIRST, newest: int = NEWEST, step: int = STEP):
        self._log, self._first, self._newest, self._step = log, first, newest, step
        self._gap: Optional[LogGap] = None
        self._look_at = 0.0
        self._is_possible = True

    def look(self, now: float) -> None:
        """Free a middle part of the log if the log exceeds its limit; check it at most once every ``BOUND_S``."""
        if now < self._look_at or not self._is_possible:
            return
        self._look_at = now + BOUND_S
        try:
            size = os.lstat(str(self._log)).st_size
            if size > self._first + self._newest + self._step:
                self._free(size)
        except OSError as error:
            self._is_possible = False
            with contextlib.suppress(OSError):
                gap_file_of(self._log).unlink()
            say_once(f"the size of {self._log} is not limited: {os.strerror(error.errno or 0)}")

    def _free(self, size: int) -> None:
        known = gap_of(self._log) if self._gap is None else self._gap
        if known.end and size - known.end <= self._newest + self._step:
            return
        begin = known.begin if known.end else self._line_after(self._first)
        self._gap = LogGap(begin, self._line_after(size - self._newest))
        replace_file(gap_file_of(self._log), f"{self._gap.begin} {self._gap.end}\n")
        with open_to_append(self._log) as file:
            punch(file.fileno(), *self._gap)

    def _line_after(self, offset: int) -> int:
        """Return the beginning of the first line after an offset; the offset itself where no line begins nearby."""
        with open_to_read(self._log) as file:
            file.seek(offset)
            return offset + file.read(NEARBY).find(b"\n") + 1
