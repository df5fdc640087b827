"""The lines of one task, attempt after attempt, read without ever holding a log in memory."""

from pathlib import Path
from typing import Any, BinaryIO, Dict, Iterator, List, Optional

from launch.agent.folder import RunFolder
from launch.agent.log_times import Times

BLOCK = 1 << 16
LONGEST = 1 << 16  # bytes; a longer line comes in parts


class TaskLog:
    """Reads a task's logs, and goes on where it stopped.

    Args:
      since, until: only lines written from the one to before the other, times of day in seconds.
      tail: only so many last lines of what is there at the first reading.
    """

    def __init__(
        self,
        folder: RunFolder,
        task: str,
        since: Optional[float] = None,
        until: Optional[float] = None,
        tail: Optional[int] = None,
    ):
        self._folder, self._task = folder, task
        self._since, self._until, self._tail = since, until, tail
        self._times: Dict[Path, Times] = {}
        self._read: Dict[Path, int] = {}

    def lines(self, last: bool) -> Iterator[Dict[str, Any]]:
        """New whole lines, and with ``last`` a rest without newline: {"task", "attempt", "line", "time"}."""
        logs = self._folder.logs(self._task)
        for log in logs:
            self._open(log)
        if self._tail is not None:
            self._skip_to_tail(logs, self._tail)
            self._tail = None
        for log in logs:
            yield from self._lines(log, last)

    def _open(self, log: Path) -> None:
        times = self._times.setdefault(log, Times(log))
        times.update()
        if log not in self._read:
            with open(str(log), "rb") as file:
                self._read[log] = line_start(file, times.written_before(self._since or 0.0))

    def _end(self, log: Path) -> int:
        """Lines that begin from here on are not asked for."""
        size = log.stat().st_size
        if self._until is None or self._times[log].of(max(0, size - 1)) < self._until:
            return size
        return self._times[log].written_before(self._until)

    def _skip_to_tail(self, logs: List[Path], count: int) -> None:
        for log in reversed(logs):
            with open(str(log), "rb") as file:
                begin, end = self._read[log], self._end(log)
                self._read[log] = start_of_last(file, begin, end, count) if count else end
                count -= min(count, count_lines(file, self._read[log], end, count))

    def _lines(self, log: Path, last: bool) -> Iterator[Dict[str, Any]]:
        attempt, end = int(log.stem.split("_")[1]), self._end(log)
        with open(str(log), "rb") as file:
            file.seek(self._read[log])
            while self._read[log] < end:
                line = file.readline(LONGEST)
                whole = last or len(line) == LONGEST or line.endswith(b"\n")
                if not line or not whole:  # it was cut short meanwhile, or its rest is still to come
                    return
                moment = self._times[log].of(self._read[log])
                self._read[log] += len(line)
                yield {"task": self._task, "attempt": attempt, "line": shown(line), "time": moment}


def shown(line: bytes) -> str:
    """A line as a terminal shows it at last: of a progress bar that overwrites itself, its end."""
    return line.rstrip(b"\r\n").rsplit(b"\r", 1)[-1].decode(errors="replace")


def line_start(file: BinaryIO, offset: int) -> int:
    """Where the first line begins that begins at ``offset`` or after."""
    if offset == 0:
        return 0
    file.seek(offset - 1)
    while True:
        part = file.readline(LONGEST)
        if len(part) < LONGEST or part.endswith(b"\n"):
            return file.tell()


def start_of_last(file: BinaryIO, begin: int, end: int, count: int) -> int:
    """Where the last ``count`` lines of the bytes from ``begin`` to ``end`` begin. Reads no more than it must."""
    at = end
    while at > begin:
        size = min(BLOCK, at - begin)
        at -= size
        file.seek(at)
        block = file.read(size)
        found = block.rfind(b"\n", 0, end - 1 - at)  # a newline at the very end begins no line
        while found >= 0:
            count -= 1
            if count == 0:
                return at + found + 1
            found = block.rfind(b"\n", 0, found)
    return begin


def count_lines(file: BinaryIO, begin: int, end: int, most: int) -> int:
    """How many lines begin between ``begin`` and ``end``, counted up to ``most``."""
    file.seek(begin)
    lines = 0
    while file.tell() < end and lines < most:
        lines += bool(file.readline())
    return lines
