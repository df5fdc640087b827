"""The view of an attached run in a terminal: a live table; ``plain_view`` has the lines for anywhere else."""

import sys
from contextlib import ExitStack, contextmanager
from typing import Iterator

from rich.live import Live
from rich.text import Text

from launch.agent.text.plain_text import without_controls
from launch.status.run import RunStatus
from launch.view.console import make_console, unechoed
from launch.view.loss_curve import LossCurve
from launch.view.picture import Picture
from launch.view.plain_view import View


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
