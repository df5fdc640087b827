"""The bound of a log: its first and its newest bytes stay, and those between give their room back to the disk.

A task writes straight into its log. So no other file could take the log's place without a loss of lines. Instead the
kernel frees the blocks between. The log keeps its length, and every line its offset, on which the index of times and
each reader rely. Beside the log, ``attempt_0.log.gap`` has the two ends of the gap as ``BEGIN END``; it is written
before the blocks are freed. Both ends are beginnings of lines, if there are any nearby.
"""

import contextlib
import os
from pathlib import Path
from typing import NamedTuple, Optional

from cluster.protocol.atomic_file import replace
from cluster.protocol.regular_file import open_to_append, open_to_read, read_at_most
from launch.agent.linux.file_holes import punch
from launch.agent.state.log import say_once

FIRST, NEWEST = 16 << 20, 240 << 20  # bytes of a log that stay
STEP = 16 << 20  # bytes that a gap grows by, at the least
LOOK_S = 5.0
NEARBY = 1 << 16  # bytes in which the beginning of a line is looked for
NOTICE = "({} MiB of this log are gone from here: a log keeps its first {} MiB and its newest {} MiB)"


class Gap(NamedTuple):
    """The part of a log that is gone, by the offsets of its beginning and of its end."""

    begin: int
    end: int

    def holds(self, offset: int) -> bool:
        """Return whether the byte at an offset is gone."""
        return self.begin <= offset < self.end

    @property
    def notice(self) -> str:
        """Return the line that readers find in its place."""
        return NOTICE.format((self.end - self.begin) >> 20, FIRST >> 20, NEWEST >> 20)


NONE = Gap(0, 0)


def path_of(log: Path) -> Path:
    """Return the path of the file with a log's gap."""
    return log.with_name(f"{log.name}.gap")


def gap_of(log: Path) -> Gap:
    """Return the gap of a log; one without bytes where there is none."""
    try:
        begin, end = map(int, read_at_most(path_of(log), 100).split())
    except (OSError, ValueError):  # there is none, or something else that a task has made of it
        return NONE
    return Gap(begin, end) if 0 <= begin < end else NONE


class LogBound:
    """Keep one log within its bound, as its task goes on writing."""

    def __init__(self, log: Path, first: int = FIRST, newest: int = NEWEST, step: int = STEP):
        self._log, self._first, self._newest, self._step = log, first, newest, step
        self._gap: Optional[Gap] = None
        self._look_at = 0.0
        self._is_possible = True

    def look(self, now: float) -> None:
        """Free what is beyond the bound; looks every ``LOOK_S``."""
        if now < self._look_at or not self._is_possible:
            return
        self._look_at = now + LOOK_S
        try:
            size = os.lstat(str(self._log)).st_size
            if size > self._first + self._newest + self._step:
                self._free(size)
        except OSError as error:
            self._is_possible = False
            with contextlib.suppress(OSError):
                path_of(self._log).unlink()
            say_once(f"{self._log} has no bound: {os.strerror(error.errno or 0)}")

    def _free(self, size: int) -> None:
        known = gap_of(self._log) if self._gap is None else self._gap
        if known.end and size - known.end <= self._newest + self._step:
            return
        begin = known.begin if known.end else self._line_after(self._first)
        self._gap = Gap(begin, self._line_after(size - self._newest))
        replace(path_of(self._log), f"{self._gap.begin} {self._gap.end}\n")
        with open_to_append(self._log) as file:
            punch(file.fileno(), *self._gap)

    def _line_after(self, offset: int) -> int:
        """Return where the first line after an offset begins; the offset itself where none does nearby."""
        with open_to_read(self._log) as file:
            file.seek(offset)
            return offset + file.read(NEARBY).find(b"\n") + 1
