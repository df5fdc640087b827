"""The view of an attached run: a live table in a terminal, plain lines elsewhere."""

import sys
import time
from contextlib import ExitStack, contextmanager
from typing import Any, Dict, Iterator, List, Optional, TextIO

from rich.live import Live
from rich.text import Text

from launch.agent.text.plain_text import without_controls
from launch.status import incident_text
from launch.status.run import RunStatus
from launch.view.console import make_console, unechoed
from launch.view.loss_curve import LossCurve
from launch.view.picture import Picture
from launch.view.run_text import count, evaluation, formation, progress, starting

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
                lines.append(incident_text.sentence(incident))
        found = status.evaluation
        if found and self._shown.get("evaluation") != found:
            self._shown["evaluation"] = found
            lines.append(evaluation(found))
        now = time.monotonic()
        if status.global_step is not None and (now - self._progress_at >= EVERY_S or self._shown.get("step") is None):
            self._progress_at, self._shown["step"] = now, status.global_step
            lines.append(progress(status))
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


class LiveView(View):
    """A progress bar and a table of the tasks, redrawn in place, in as many lines as the terminal has."""

    def __init__(self) -> None:
        super().__init__()
        self._console = make_console()
        self._live = Live(console=self._console, refresh_per_second=4)
        self._terminal = ExitStack()
        self._curve = LossCurve()

    def __enter__(self) -> "View":
        self._draw()
        return self

    def __exit__(self, *_: object) -> None:
        self._terminal.close()

    def _draw(self) -> None:
        self._terminal.enter_context(unechoed(sys.stdin))  # the ^C of a Ctrl-C would tear the picture
        self._live.start(refresh=True)
        self._terminal.callback(self._live.stop)

    @contextmanager
    def hidden(self) -> Iterator[None]:
        self._terminal.close()
        try:
            yield
        finally:
            self._draw()

    def note(self, text: str) -> None:
        self._console.print(Text(without_controls(text)))

    def show(self, status: RunStatus) -> None:
        self._curve.add(status)
        losses = [loss for _, loss in self._curve.points]
        self._live.update(Picture(status, losses, self._console.height))


def for_terminal() -> View:
    """Return the view that suits stdout."""
    return LiveView() if sys.stdout.isatty() else View()


def print_status(status: RunStatus, wide: bool = False) -> None:
    """Print ``launch status`` for a person; outside a terminal, or if ``wide``, with every task and column."""
    console = make_console(wide)
    whole = wide or not sys.stdout.isatty()
    console.print(Picture(status, height=None if whole else console.height, wide=whole))
    if status.cause:
        console.print(Text(f"cause: {status.cause}"))
