"""The view of an attached run in a terminal: a picture for the room that there is, drawn again as the run changes.

What matters comes first, then as many tasks as fit. ``plain_view`` has the lines for anywhere else.
"""

import sys
from contextlib import ExitStack, contextmanager
from typing import Any, Iterable, Iterator, List, Optional, Sequence

from rich.console import Console, ConsoleOptions, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from launch.agent.text import without_controls
from launch.status import incident_status
from launch.status.run import RunStatus
from launch.view import run_text
from launch.view.console import make_console, unechoed
from launch.view.loss_curve import LossCurve, sparkline
from launch.view.plain_view import View
from launch.view.task_table import COLOURS, left_out, task_table

BAR_WIDTH = 60
SPARKLINE_WIDTH = 40
MOST_INCIDENTS = 3
INCIDENTS_SHARE = 0.4  # of the lines, at most; at least one incident is shown
LEAST_ROWS = 3
BELOW = 1  # the line of the cursor


class Picture:
    """A run as rich draws it.

    Args:
      losses: the losses so far, for their curve.
      height: the lines that there are; None for as many as the picture needs.
      wide: every column in full, however long a line becomes.
    """

    def __init__(
        self, status: RunStatus, losses: Sequence[float] = (), height: Optional[int] = None, wide: bool = False
    ):
        self._status, self._losses, self._height, self._wide = status, losses, height, wide

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Draw the head, what is wrong, and the table of tasks in the lines that are left."""
        above = [*self._head(options.max_width), *self._troubles(console, options)]
        yield from above
        most = None
        if self._height is not None:
            used = sum(_lines(console, options, part) for part in above)
            most = max(LEAST_ROWS, self._height - used - 1 - BELOW)
        yield task_table(self._status.tasks, None if self._wide else options.max_width, most)
        yield from map(Text, left_out(self._status.tasks, most))

    def _head(self, width: int) -> Iterator[RenderableType]:
        status = self._status
        yield Text(run_text.head(status), style=COLOURS.get(status.state, "bold"))
        if status.global_step is None:
            yield from _texts(filter(None, [run_text.starting(status)]))
        else:
            if status.steps:
                yield ProgressBar(total=status.steps, completed=status.global_step, width=min(BAR_WIDTH, width))
                yield Text("")  # the bar ends no line
            yield Text(run_text.progress(status))
            yield from _texts(self._curve(width))
            yield from _texts(run_text.training_metrics(status))
            yield from _texts([*run_text.checkpoint(status), *run_text.best(status)])
        yield from _texts([run_text.evaluation(status.evaluation)] if status.evaluation else [])
        yield from _texts(run_text.metrics(status))

    def _curve(self, width: int) -> List[str]:
        bars = sparkline(self._losses, min(SPARKLINE_WIDTH, width - len("loss ")))
        return [f"loss {bars}"] if bars else []

    def _troubles(self, console: Console, options: ConsoleOptions) -> List[RenderableType]:
        status = self._status
        lines = [*run_text.formation(status), *run_text.silence(status), *run_text.slowness(status)]
        lines += [*run_text.hook_problem(status), *run_text.warnings(status)]
        return [*_texts(lines, "yellow"), *self._incidents(console, options)]

    def _incidents(self, console: Console, options: ConsoleOptions) -> Sequence[RenderableType]:
        for most in range(MOST_INCIDENTS, 0, -1):
            parts = list(_texts(incident_status.lines(self._status.incidents, most)))
            lines = sum(_lines(console, options, part) for part in parts)
            if self._height is None or lines <= INCIDENTS_SHARE * self._height:
                break
        return parts


def _texts(lines: Iterable[str], style: str = "") -> Iterator[Text]:
    return (Text(line, style=style) for line in lines)


def _lines(console: Console, options: ConsoleOptions, part: Any) -> int:
    return len(console.render_lines(part, options.update(height=None), pad=False))


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
