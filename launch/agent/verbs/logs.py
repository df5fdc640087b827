"""The lines of tasks' logs on this host, in the order in which they were written.

A task's lines are read one attempt after the other. No log is held in memory as a whole.
"""

import heapq
import os
import time
from pathlib import Path
from typing import Any, BinaryIO, Callable, Dict, Iterator, List, Optional, Sequence, Set

from launch.agent.leftovers import agent_pid
from launch.agent.state import plan_file
from launch.agent.state.run_folder import RunFolder, attempt_of
from launch.agent.state.runs import newest
from launch.agent.tasks.task_log import LogGap, Times, gap_of
from launch.agent.text import plain
from launch.agent.wire.verb_requests import LogsRequest

BLOCK = 1 << 16
LONGEST = 1 << 16  # the shown bytes of a line
REST = 1000  # characters that each further part of a line may add: the newest state of a progress bar
CUT = " … (this line is longer than 64 KiB; its rest is in the log)"
CLOSED = "(this log cannot be read: something, perhaps the task, has changed its permissions)"


class TaskLog:
    """A reader of a task's logs, which continues where it stopped.

    Args:
      since, until: read only lines that were written from ``since`` to before ``until``, Unix times in seconds.
      tail: skip all lines but the last ``tail`` at the first reading.
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
        self._closed: Set[Path] = set()
        self._gaps: Dict[Path, LogGap] = {}
        self._cut: Dict[Path, bool] = {}  # whether the next bytes continue a line that was already shown

    def lines(self, last: bool) -> Iterator[Dict[str, Any]]:
        """Yield {"task", "attempt", "line", "time"} for each complete line since the last call.

        With ``last``, the method also yields a last line that has no newline.
        """
        found = self._folder.logs(self._task)
        logs = [log for log in found if os.access(str(log), os.R_OK)]
        for log in set(found) - set(logs) - self._closed:
            self._closed.add(log)
            yield {"task": self._task, "attempt": attempt_of(log), "line": CLOSED, "time": log.stat().st_mtime}
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
        self._gaps[log] = gap_of(log)
        if log not in self._read:
            offset = times.written_before(self._since or 0.0)
            if self._gaps[log].holds(offset):
                self._read[log] = self._gaps[log].begin
                return
            with open(str(log), "rb") as file:
                self._read[log] = line_start(file, offset)

    def _end(self, log: Path) -> int:
        """Return the offset of the end of the requested lines."""
        size = log.stat().st_size
        if self._until is None or self._times[log].time_of(max(0, size - 1)) < self._until:
            return size
        return self._times[log].written_before(self._until)

    def _skip_to_tail(self, logs: List[Path], count: int) -> None:
        for log in reversed(logs):
            with open(str(log), "rb") as file:
                end = self._end(log)
                begin = max(self._read[log], end - count * LONGEST)
                begin = begin if end <= self._gaps[log].end else max(begin, self._gaps[log].end)
                self._read[log] = start_of_last(file, begin, end, count) if count else end
                count -= min(count, count_lines(file, self._read[log], end, count))

    def _lines(self, log: Path, last: bool) -> Iterator[Dict[str, Any]]:
        attempt, end = attempt_of(log), self._end(log)
        with open(str(log), "rb") as file:
            file.seek(self._read[log])
            while self._read[log] < end:
                gap, size = self._gaps[log], self._readable(log)
                if not size:
                    yield {
                        "task": self._task,
                        "attempt": attempt,
                        "line": gap.line,
                        "time": self._times[log].time_of(gap.end),
                    }
                    self._read[log] = file.seek(gap.end)
                    continue
                line = file.readline(size)
                if b"\0" in line and self._has_gone(log):
                    file.seek(self._read[log])
                    continue
                whole = last or len(line) == size or line.endswith(b"\n")
                if not line or not whole:  # the log was truncated meanwhile, or the rest of the line is not written yet
                    return
                moment, text = self._times[log].time_of(self._read[log]), show(line, self._cut.get(log, False))
                self._read[log] += len(line)
                self._cut[log] = not line.endswith(b"\n")
                if text is not None:
                    yield {"task": self._task, "attempt": attempt, "line": text, "time": moment}

    def _readable(self, log: Path) -> int:
        """Return the number of bytes of a line that can be read next; 0 in the gap of a log."""
        gap, offset = self._gaps[log], self._read[log]
        return 0 if gap.holds(offset) else min(LONGEST, gap.begin - offset) if offset < gap.begin else LONGEST

    def _has_gone(self, log: Path) -> bool:
        """Return whether the next line was freed since the log was opened."""
        self._gaps[log] = gap_of(log)
        return self._gaps[log].holds(self._read[log])


def show(line: bytes, goes_on: bool = False) -> Optional[str]:
    """Return a line as a terminal finally shows it.

    With ``goes_on``, ``line`` continues a line that was already shown. The result is then None, unless a carriage
    return in it begins a new state of the line, as in a progress bar.
    """
    if goes_on:
        return plain(line.decode(errors="replace"))[-REST:] if b"\r" in line.rstrip(b"\r\n") else None
    text = plain(line.rstrip(b"\n").decode(errors="replace"))
    return text if len(line) < LONGEST or b"\r" in line else text + CUT


def line_start(file: BinaryIO, offset: int) -> int:
    """Return the offset of the first line that begins at ``offset`` or after."""
    if offset == 0:
        return 0
    file.seek(offset - 1)
    while True:
        part = file.readline(LONGEST)
        if len(part) < LONGEST or part.endswith(b"\n"):
            return file.tell()


def start_of_last(file: BinaryIO, begin: int, end: int, count: int) -> int:
    """Return the offset of the first of the last ``count`` lines between ``begin`` and ``end``.

    The function reads backwards, and only as much as necessary.
    """
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
    """Count the lines that begin between ``begin`` and ``end``, up to ``most``."""
    file.seek(begin)
    lines, begins = 0, True
    while file.tell() < end and lines < most:
        part = file.readline(LONGEST)
        if not part:  # the log was truncated meanwhile
            break
        lines += begins
        begins = part.endswith(b"\n")
    return lines


POLL_S = 0.1


def _nobody_goes(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def logs(
    request: LogsRequest,
    send: Callable[[Dict[str, Any]], None],
    gone: Callable[[float], bool] = _nobody_goes,
) -> None:
    """Send {"task", "attempt", "line", "time"} for every line that this host's tasks wrote.

    ``gone`` waits a given number of seconds, or until the launcher ends; it returns whether the launcher has ended.
    """
    folder = newest(request.run)
    if folder is None:
        send({"error": "no run of this name has been on this host"})
        return
    files = [TaskLog(folder, task, request.since, request.until, request.tail) for task in request.tasks]
    alive = True
    while alive:
        # Checked before the files, so that no line written until the end is missed.
        alive = request.follow and agent_pid(folder) is not None
        for line in heapq.merge(*(file.lines(last=not alive) for file in files), key=lambda line: line["time"]):
            send(line)
        if alive and gone(POLL_S):
            return
    elsewhere = _elsewhere(folder, request.tasks)
    if elsewhere:
        send({"error": f"{', '.join(elsewhere)} of {folder.run} ran on another host: the hosts file has changed since"})


def _elsewhere(folder: RunFolder, tasks: Sequence[str]) -> List[str]:
    """Return the ones of ``tasks`` that this host was not asked to run.

    These tasks have no lines here; ``logs`` reports an error for them instead of nothing.
    """
    plan = plan_file.read(folder)
    return [task for task in tasks if plan.tasks is not None and task not in plan.names]
