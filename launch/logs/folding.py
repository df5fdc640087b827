"""Fold equal lines that many tasks print at about the same time into one line with a count."""

from collections import deque
from datetime import datetime
from typing import Callable, Deque, Dict, List, NamedTuple, Tuple

from launch.agent.text import gpu_note
from launch.view.console import fold

MOST = 5000  # most lines held back, for any window


class LogLine(NamedTuple):
    """A line of a task's log. ``time`` is a time of day, in seconds."""

    time: float
    task: str
    host: str
    text: str


class Folded(NamedTuple):
    """A line and the tasks that printed the line: [(task, host)]. ``time`` is when the first task printed the line."""

    time: float
    text: str
    sources: List[Tuple[str, str]]


class Window:
    """A buffer that holds lines back for a while, so that equal lines of other tasks can join them.

    The window returns lines in the order of their first arrivals. A text that a task prints twice stays two lines.
    TensorFlow's notes about missing GPU libraries are shown without their time and place. With ``seconds`` 0 the window
    returns every line separately.
    """

    def __init__(self, seconds: float):
        self._seconds = seconds
        self._held: Deque[Tuple[float, Folded]] = deque()  # (arrival time, line), in that order
        self._open: Dict[str, Folded] = {}  # by text, the line that the next task joins

    def take(self, line: LogLine, now: float) -> None:
        """Add a line; ``now`` is in seconds, on the same clock as in ``due``."""
        text = (gpu_note(line.text) or line.text) if self._seconds else line.text
        folded, source = self._open.get(text), (line.task, line.host)
        if folded is None or source in folded.sources or not self._seconds:
            folded = self._open[text] = Folded(line.time, text, [])
            self._held.append((now, folded))
        folded.sources.append(source)

    def due(self, now: float) -> List[Folded]:
        """Return the lines that have been held back long enough at the time ``now``, in seconds."""
        return self._let_go(lambda came: now - came >= self._seconds or len(self._held) > MOST)

    def rest(self) -> List[Folded]:
        """Return all lines, because no more lines will come."""
        return self._let_go(lambda came: True)

    def _let_go(self, is_over: Callable[[float], bool]) -> List[Folded]:
        gone = []
        while self._held and is_over(self._held[0][0]):
            _, folded = self._held.popleft()
            gone.append(folded)
            if self._open.get(folded.text) is folded:
                del self._open[folded.text]
        return gone


def shown(line: Folded, times: bool = False) -> str:
    """Return the text of a line; with ``times``, the text begins with the time of day.

    Examples: ``worker:1@gpu02 text``, and ``worker:[0-7]@gpu[01-04] ×8 text``.
    """
    at = f"{datetime.fromtimestamp(line.time):%Y-%m-%d %H:%M:%S} " if times else ""
    return f"{at}{_printers(line.sources)} {line.text}"


def _printers(sources: List[Tuple[str, str]]) -> str:
    if len(sources) == 1:
        return "@".join(sources[0])
    tasks, hosts = zip(*sources)
    return f"{fold(tasks)}@{fold(hosts)} ×{len(sources)}"
