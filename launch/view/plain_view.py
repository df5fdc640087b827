"""A run in plain lines for a log, a pipe, or a file. The module does not load rich, which takes a tenth of a second."""

import math
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Dict, Iterator, List, Optional, Set, TextIO

from launch.agent.text import without_controls
from launch.status import incident_status
from launch.status.run import RunStatus
from launch.view.run_text import (
    NEWS,
    count,
    evaluation,
    explains,
    formation,
    progress,
    quietness,
    starting,
    training_metrics,
    warnings,
)

EVERY_S = 5.0
STARTING_EVERY_S = 2.0


class View:
    """A view that prints a run's status in plain lines as it changes; ``LiveView`` is for a terminal."""

    def __init__(self, output: Optional[TextIO] = None):
        self._output = output or sys.stdout
        self._began = time.monotonic()
        self._progress_at = self._starting_at = -math.inf
        self._starting: List[str] = []
        self._shown: Dict[Any, Any] = {}
        self._quiet_before: Set[str] = set()

    def __enter__(self) -> "View":
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing, because this view has nothing to undo."""

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Leave the terminal to other programs in this block; this view has not changed the terminal."""
        yield

    def note(self, text: str) -> None:
        """Print ``text`` as a separate line, with the seconds since the view began."""
        print(f"[{time.monotonic() - self._began:6.1f} s] {without_controls(text)}", file=self._output, flush=True)

    def show(self, status: RunStatus) -> None:
        """Print changes of state at once, and progress every ``EVERY_S`` seconds."""
        for line in self._news(status):
            self.note(line)

    def _news(self, status: RunStatus) -> List[str]:
        lines = [
            f"{task.title} {task.state}" + ("" if explains(status, task) else f": {task.cause}")
            for task in status.tasks
            if task.cause and self._is_new(task.title, (task.state, task.cause, task.restarts))
        ]
        counted = count(status)
        if self._is_new("", (status.state, counted)):
            lines.append(f"{status.state}: {counted}")
        lines += self._starts(status)
        formed = formation(status)
        lines += formed if self._is_new("formation", formed) else []
        for incident in status.incidents:
            if not incident.open and self._is_new(("over", incident.number), True):
                lines.append(incident_status.sentence(incident))
        lines += self._quiet(status)
        for name, lines_of in NEWS.items():
            lines += lines_of(status) if self._is_new(name, getattr(status, name)) else []
        lines += [each for each in warnings(status) if self._is_new(("warned", each), True)]
        if status.evaluation and self._is_new("evaluation", status.evaluation):
            lines += evaluation(status)
        return lines + self._progress(status)

    def _quiet(self, status: RunStatus) -> List[str]:
        """Return the lines about tasks that do nothing any more, or work again."""
        quiet = {task.name for task in status.tasks if task.quiet}
        new, again = quiet - self._quiet_before, sorted(self._quiet_before - quiet)
        self._quiet_before = quiet
        lines = quietness(replace(status, tasks=[task for task in status.tasks if task.name in new]))
        return [*lines, *([f"no longer quiet: {', '.join(again)}"] if again else [])]

    def _is_new(self, what: Any, value: Any) -> bool:
        """Return whether this value differs from the last shown one, and record the value as shown."""
        is_new = what not in self._shown or self._shown[what] != value
        self._shown[what] = value
        return is_new

    def _starts(self, status: RunStatus) -> List[str]:
        """Return the activities of starting tasks, if they have changed, at most every ``STARTING_EVERY_S`` seconds."""
        doing, now = starting(status), time.monotonic()
        if doing == self._starting or now - self._starting_at < STARTING_EVERY_S:
            return []
        self._starting, self._starting_at = doing, now
        return doing

    def _progress(self, status: RunStatus) -> List[str]:
        """Return the progress of training, at most every ``EVERY_S`` seconds."""
        now = time.monotonic()
        if status.global_step is None or now - self._progress_at < EVERY_S:
            return []
        self._progress_at = now
        return [progress(status), *training_metrics(status)]
