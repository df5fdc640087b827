"""The keys of ``launch status --watch``, and their effect on the table of tasks. This module needs no terminal."""

from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from launch.status.run import RunStatus
from launch.status.task import TaskStatus
from launch.view.task_table import Rank, urgency

ENTER, ESCAPE, BACKSPACE = "\r\n", "\x1b", "\x7f\b"  # each character of a text is such a key
LONGEST = 60  # characters of a typed text
SORTS: Mapping[str, Optional[Callable[[TaskStatus], Any]]] = {
    "trouble": None,  # the order of the file, and where tasks do not fit those with trouble first
    "ms/step": lambda task: -(task.step_time_ms or 0.0),
    "restarts": lambda task: -task.restarts,
    "host": lambda task: task.host,
}
HELP = (
    "s   sort the tasks: trouble first, by ms/step, by restarts, by host",
    "/   show only tasks whose name, host or state has a text: gpu02, restarting",
    "l   show the last lines of a task's log: worker:1; Enter: the first task's",
    "p   pause: the picture stays, and the run continues",
    "Esc show all tasks again",
    "q   end this view; the run continues",
)
_TOGGLES = {"p": "paused", "?": "helps", "q": "ends"}
_ASKS = {"/": "filter", "l": "log of task"}


@dataclass(frozen=True)
class Choices:
    """The choices that the viewer has made by keys.

    Attributes:
      only: the text that the title, state or mark of each shown task contains.
      log: the name, or a part of the name, of the task whose log is shown; "" for the first task, None for no log.
      asked: the key whose text is being typed; "" for none.
    """

    sort: str = "trouble"
    only: str = ""
    log: Optional[str] = None
    paused: bool = False
    helps: bool = False
    ends: bool = False
    asked: str = ""
    typed: str = ""

    def pressed(self, key: str) -> "Choices":
        """Return the choices after the viewer has pressed ``key``."""
        changes: Dict[str, Any] = {}
        if self.asked:
            changes = self._typing(key)
        elif key == "s":
            order = list(SORTS)
            changes = {"sort": order[(order.index(self.sort) + 1) % len(order)]}
        elif key in _ASKS:
            changes = {"asked": key, "typed": ""}
        elif key in _TOGGLES:
            changes = {_TOGGLES[key]: not getattr(self, _TOGGLES[key])}
        elif key == ESCAPE:
            changes = {"only": "", "log": None, "helps": False}
        return replace(self, **changes)

    def _typing(self, key: str) -> Dict[str, Any]:
        if key in ENTER:
            return {"asked": "", "only" if self.asked == "/" else "log": self.typed}
        if key == ESCAPE:
            return {"asked": ""}
        if key in BACKSPACE:
            return {"typed": self.typed[:-1]}
        return {"typed": (self.typed + key)[:LONGEST]} if key.isprintable() else {}

    def arranged(self, tasks: Sequence[TaskStatus]) -> List[TaskStatus]:
        """Return the chosen tasks in the chosen order."""
        text, key = self.typed if self.asked == "/" else self.only, SORTS[self.sort]
        chosen = [task for task in tasks if text in f"{task.title} {task.state} {task.mark}"]
        return chosen if key is None else sorted(chosen, key=key)

    def rank(self, status: RunStatus) -> Rank:
        """Return the rank that decides which tasks have a row, where not all tasks fit."""
        return urgency(status) if SORTS[self.sort] is None else lambda task: 0

    def task_of_log(self, tasks: Sequence[TaskStatus]) -> Optional[TaskStatus]:
        """Return the task whose log is shown; None where no log is shown, or no task fits."""
        if self.log is None:
            return None
        ordered = sorted(self.arranged(tasks), key=lambda task: task.name != self.log)
        return next((task for task in ordered if self.log in task.title), None)

    @property
    def foot(self) -> str:
        """Return the last line of the picture."""
        if self.asked:
            return f"{_ASKS[self.asked]}: {self.typed}_   Enter  Esc"
        only = f": {self.only}" if self.only else ""
        state = "PAUSED  " if self.paused else ""
        return f"{state}s sort: {self.sort}  / filter{only}  l log  p pause  q quit  ? help"
