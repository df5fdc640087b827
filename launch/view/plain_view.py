"""A run in plain lines, as it changes: for a log, a pipe, or a file. Loads no rich, which takes a tenth of a second."""

import sys
import time
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Optional, TextIO

from launch.agent.text import without_controls
from launch.status import incident_status
from launch.status.run import RunStatus
from launch.view.run_text import (
    count,
    evaluation,
    formation,
    hook_problem,
    progress,
    starting,
    training_metrics,
    warnings,
)

EVERY_S = 5.0
STARTING_EVERY_S = 2.0


class View:
    """Print a run's status in plain lines as it changes; ``LiveView`` is for a terminal."""

    def __init__(self, output: Optional[TextIO] = None):
        self._output = output or sys.stdout
        self._began = time.monotonic()
        self._progress_at = 0.0
        self._shown: Dict[Any, Any] = {}

    def __enter__(self) -> "View":
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing, because there is nothing to undo."""

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Leave the terminal as others expect it."""
        yield

    def note(self, text: str) -> None:
        """Print a line of its own."""
        print(f"[{time.monotonic() - self._began:6.1f} s] {without_controls(text)}", file=self._output, flush=True)

    def show(self, status: RunStatus) -> None:
        """Print what is new: changes of state at once, progress every ``EVERY_S`` seconds."""
        for line in self._news(status):
            self.note(line)

    def _news(self, status: RunStatus) -> List[str]:
        lines = []
        for task in status.tasks:
            name, trouble = task.title, (task.state, task.cause, task.restarts)
            if task.cause and self._shown.get(name) != trouble:
                self._shown[name] = trouble
                lines.append(f"{name} {task.state}: {task.cause}")
        overall = (status.state, count(status))
        if self._shown.get("") != overall:
            self._shown[""] = overall
            lines.append(f"{status.state}: {overall[1]}")
        lines += self._starts(status)
        formed = formation(status)
        if self._shown.get("formation", []) != formed:
            self._shown["formation"] = formed
            lines += formed
        for incident in status.incidents:
            if not incident.open and self._shown.get(("over", incident.number)) is None:
                self._shown[("over", incident.number)] = True
                lines.append(incident_status.sentence(incident))
        problem = hook_problem(status)
        if self._shown.get("hook", []) != problem:
            self._shown["hook"] = problem
            lines += problem
        new = [each for each in warnings(status) if ("warned", each) not in self._shown]
        self._shown.update({("warned", each): True for each in new})
        lines += new
        found = status.evaluation
        if found and self._shown.get("evaluation") != found:
            self._shown["evaluation"] = found
            lines.append(evaluation(found))
        now = time.monotonic()
        if status.global_step is not None and (now - self._progress_at >= EVERY_S or self._shown.get("step") is None):
            self._progress_at, self._shown["step"] = now, status.global_step
            lines += [progress(status), *training_metrics(status)]
        return lines

    def _starts(self, status: RunStatus) -> List[str]:
        """Return the activities of starting tasks, if they have changed.

        The method returns news at most every ``STARTING_EVERY_S`` seconds.
        """
        doing, now = starting(status), time.monotonic()
        if doing == self._shown.get("starting", "") or now - self._shown.get("starting at", 0.0) < STARTING_EVERY_S:
            return []
        self._shown.update({"starting": doing, "starting at": now})
        return [doing] if doing else []
