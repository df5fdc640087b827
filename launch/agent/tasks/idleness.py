"""The detection of attempts that do no work, for the key ``quiet_s``. An attempt is one start of a task.

An attempt does no work while all of this holds for all of its processes together:

    lines      its log has no new line. A repeated line, such as "still waiting" every ten seconds, is not new, even if
               its time of day differs
    processor  the processes use less than 1 % of a processor
    traffic    they send and receive less than 100 bytes a second over TCP, as with keep-alives alone; other networks
               are not counted
    files      they read and write less than 64 KiB a second
    GPUs       the driver reports that the task's GPUs compute nothing

Each rate is the mean since the attempt last worked, so a rare burst of a sleeping thread does not count as work.
Seconds in which the agent itself did not run do not count.
"""

import os
import re
from collections import deque
from pathlib import Path
from typing import Any, Callable, Deque, Dict, List, Mapping, NamedTuple, Optional, Sequence

from cluster.protocol.shared_files import open_to_read
from launch.agent.linux import processes
from launch.agent.linux.procfs import Work, work_of
from launch.agent.tasks import stacks
from launch.agent.text import plain

LOOKS = 3  # in ``quiet_s``, at least
PIECE = 16 << 10  # bytes of a log that are read at once; more are news
RECENT = 64  # different lines that count as repeated
LONGEST_LINE, LONGEST_STACK = 300, 4000  # characters
STOPPED = {"T": "stopped by a signal", "t": "held by a debugger"}
_TIME = re.compile(r"\d{4}[-/]\d\d[-/]\d\d[T ]?|\d{1,2}:\d\d:\d\d(?:[.,]\d+)?|\b1\d{9}(?:\.\d+)?\b|^[IWEF]\d{4}\b")


class Used(NamedTuple):
    """The work of an attempt's processes so far: processor seconds, and bytes of file and network traffic."""

    processor_s: float = 0.0
    files: float = 0.0
    traffic: float = 0.0


IDLE = Used(0.01, 64 << 10, 100.0)  # a second
MARGIN = Used(0.1, 64 << 10, 1000.0)  # in addition, since the last sign of work


def is_work(earlier: Used, later: Used, seconds: float) -> bool:
    """Return whether an attempt has worked in the ``seconds`` between the counts ``earlier`` and ``later``."""
    return any(new - old > idle * seconds + more for old, new, idle, more in zip(earlier, later, IDLE, MARGIN))


class Observed(NamedTuple):
    """The observed values of an attempt at one moment.

    Attributes:
      pids: its processes, the leader first.
      traffic: its bytes over TCP so far; 0 where the kernel does not count them.
      gpu_percent: the load of its GPUs; 0 where it is not known.
    """

    attempt: int
    pids: Sequence[int]
    folder: Path
    log: Path
    traffic: float = 0.0
    gpu_percent: float = 0.0


class Lines:
    """A reader of a growing log. ``last`` is the newest line, even if the program has not finished writing it."""

    def __init__(self, log: Path):
        self._log, self._size = log, 0
        self._begun = ""  # the log's last line, where it has no end yet
        self._recent: Deque[str] = deque(maxlen=RECENT)
        self.last: Optional[str] = None

    def look(self) -> Optional[bool]:
        """Return whether any line since the last call is new; None if the log has not grown."""
        try:
            size = os.lstat(str(self._log)).st_size
            if size == self._size:
                return None
            with open_to_read(self._log) as file:
                file.seek(max(self._size, size - PIECE))
                text = file.read(PIECE).decode(errors="replace")
        except OSError:  # missing, or replaced by the task
            return None
        whole, self._size = size - self._size <= PIECE, size
        lines = _lines_in(text)
        shown = self._begun + text if whole else text
        self.last = next(reversed(_lines_in(shown)), self.last)
        self._begun = re.split(r"[\r\n]", shown)[-1][-PIECE:]
        return self._add([_TIME.sub("", line)[:LONGEST_LINE] for line in lines]) or not whole

    def _add(self, lines: Sequence[str]) -> bool:
        news = [line for line in dict.fromkeys(lines) if line not in self._recent]
        self._recent.extend(news)
        return bool(news)


def _lines_in(text: str) -> List[str]:
    return list(filter(None, (plain(line).strip() for line in re.split(r"[\r\n]+", text))))


class _Watched:
    """One attempt since its last sign of work. Times are seconds on the clock of ``Idleness``."""

    def __init__(self, attempt: int, log: Path, clock: float):
        self.attempt, self.lines = attempt, Lines(log)
        self.line_at: Optional[float] = None
        self.worked_at = clock
        self.used = self.before = Used()
        self.is_asked = False  # for its stacks, since it does nothing
        self.stacks: Optional[stacks.Written] = None
        self._works: Dict[int, Work] = {}

    def add(self, works: Mapping[int, Work], traffic: float) -> None:
        """Add the work of each process since the last look."""
        pairs = [(work, self._works.get(pid, Work(0.0, 0))) for pid, work in works.items()]
        self._works = dict(works)
        self.used = Used(
            self.used.processor_s + sum(max(0.0, new.processor_s - old.processor_s) for new, old in pairs),
            self.used.files + sum(max(0, new.bytes - old.bytes) for new, old in pairs),
            traffic,
        )

    def work(self, clock: float) -> None:
        """Record a sign of work: the counts begin again."""
        self.worked_at, self.before, self.is_asked, self.stacks = clock, self.used, False, None


class Idleness:
    """A measurement of how long each attempt of this host has done no work.

    Args:
      quiet_s: the seconds after which an attempt is reported.
      every_s: the usual number of seconds between two calls of ``look``.
      mask: hides secrets in a text.
    """

    def __init__(self, quiet_s: float, every_s: float, mask: Callable[[str], str] = str):
        self._quiet_s, self._every_s, self._mask = quiet_s, every_s, mask
        self._watched: Dict[str, _Watched] = {}
        self._clock = 0.0  # seconds for which the agent has run
        self._looked_at: Optional[float] = None

    def look(self, now: float, tasks: Mapping[str, Observed]) -> Dict[str, Dict[str, Any]]:
        """Return {task: values} for the attempts that have done no work for ``quiet_s``.

        The values are {"for_s", "line", "line_s", "stack", "held"}: seconds without work, the last line and its age in
        seconds, the stacks of Python threads, and the reason why the process is stopped. An unknown value is None.
        """
        since = now if self._looked_at is None else self._looked_at
        self._clock, self._looked_at = self._clock + min(now - since, 2 * self._every_s), now
        self._watched = {name: self._watch(name, task) for name, task in tasks.items()}
        found = {name: self._look(self._watched[name], task) for name, task in tasks.items()}
        return {name: quiet for name, quiet in found.items() if quiet is not None}

    def _watch(self, name: str, task: Observed) -> _Watched:
        known = self._watched.get(name)
        return known if known and known.attempt == task.attempt else _Watched(task.attempt, task.log, self._clock)

    def _look(self, watched: _Watched, task: Observed) -> Optional[Dict[str, Any]]:
        works = {pid: work_of(pid, children=True) for pid in task.pids}
        watched.add({pid: work for pid, work in works.items() if work is not None}, task.traffic)
        has_news = watched.lines.look()
        if has_news is not None:
            watched.line_at = self._clock
        for_s = self._clock - watched.worked_at
        if has_news or task.gpu_percent >= 1 or is_work(watched.before, watched.used, for_s):
            watched.work(self._clock)
            return None
        if for_s < self._quiet_s:
            return None
        if not watched.is_asked:
            watched.is_asked, watched.stacks = True, stacks.ask(task.pids, task.folder)
            if watched.stacks is not None:
                return None  # the next look finds the stacks
        return self._report(watched, task, for_s)

    def _report(self, watched: _Watched, task: Observed, for_s: float) -> Dict[str, Any]:
        leader, line, line_at = processes.inspect(task.pids[0]), watched.lines.last, watched.line_at
        stack = "" if watched.stacks is None else stacks.main_first(watched.stacks.text())
        return {
            "for_s": round(for_s, 3),
            "line": None if line is None else self._mask(line)[:LONGEST_LINE],
            "line_s": None if line_at is None else round(self._clock - line_at, 3),
            "stack": self._mask(stack)[:LONGEST_STACK] or None,
            "held": None if leader is None else STOPPED.get(leader.state),
        }


def look_every_s(usual_s: float, quiet_s: Optional[float]) -> float:
    """Return the seconds between two calls of ``look``: ``usual_s``, or less for a short ``quiet_s``."""
    return usual_s if quiet_s is None else min(usual_s, quiet_s / LOOKS)


def pids_of(leader: int, *others: Sequence[int]) -> List[int]:
    """Return ``leader`` and then the pids in ``others``, without duplicates."""
    return list(dict.fromkeys([leader, *(pid for each in others for pid in sorted(each))]))
