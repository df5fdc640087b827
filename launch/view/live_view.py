"""The view of an attached run in a terminal: a picture that fits the terminal, redrawn as the run changes.

The most important lines come first, then as many tasks as fit, one line each. The table has the columns that fit, by
their rank. The name of a task is never cut. Outside a terminal, ``plain_view`` prints lines.
"""

import sys
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, Iterable, Iterator, List, Optional, Sequence

from rich.console import Console, ConsoleOptions, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from launch.agent.text import without_controls
from launch.status.run import ENDED, RunStatus
from launch.view import run_end, run_text
from launch.view.console import make_console, unechoed
from launch.view.plain_view import View
from launch.view.robust_scale import sparkline
from launch.view.run_text import explains
from launch.view.task_table import COLOURS, count_left_out, divided, task_table
from launch.view.watch_keys import HELP, Choices

BAR_WIDTH = 60
SPARKLINE_WIDTH = 40
MOST_INCIDENTS = 3
INCIDENTS_SHARE = 0.4  # of the lines, at most; at least one incident is shown
LEAST_ROWS = 3
BELOW = 1  # the line of the cursor


class Picture:
    """A picture of a run, which rich draws.

    Args:
      height: the available lines; None for as many as the picture needs.
      wide: whether every column is shown in full, however long a line becomes.
      watch: the viewer's choices by keys; None where the picture takes no keys.
      log: the lines of the log that the viewer has chosen.
    """

    def __init__(
        self,
        status: RunStatus,
        height: Optional[int] = None,
        wide: bool = False,
        watch: Optional[Choices] = None,
        log: Sequence[str] = (),
    ):
        self._status, self._height, self._wide = status, height, wide
        self._watch, self._log, self._foot = watch or Choices(), log, [] if watch is None else [watch.foot]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Draw the head, the problems, and the table of tasks in the remaining lines."""
        above = [*self._head(options.max_width), *self._troubles(console, options)]
        yield from above
        most = None
        if self._height is not None:
            used = sum(_lines(console, options, part) for part in above)
            most = max(LEAST_ROWS, self._height - used - 1 - BELOW - len(self._foot))
        if self._watch.helps or self._watch.log is not None:
            lines = HELP if self._watch.helps else self._log[-most:] if most else self._log
            yield from (Text(line, no_wrap=True, overflow="ellipsis") for line in lines)
        else:
            yield from self._table(None if self._wide else options.max_width, most)
        yield from (Text(line, style="reverse", no_wrap=True, overflow="ellipsis") for line in self._foot)

    def _table(self, width: Optional[int], most: Optional[int]) -> Iterator[RenderableType]:
        status, ended = self._status, self._status.state in ENDED
        rows, rest = divided(self._watch.arranged(status.tasks), most, self._watch.rank(status))
        # The cause of a run that has ended stands below its picture.
        known = [replace(task, cause=None) if ended and explains(status, task) else task for task in rows]
        yield task_table(known, width)
        yield from map(Text, count_left_out(rest))

    def _head(self, width: int) -> Iterator[RenderableType]:
        status = self._status
        yield Text(run_text.head(status), style=COLOURS.get(status.state, "bold"))
        if status.global_step is None:
            yield from _texts(run_text.starting(status))
        else:
            if status.steps:
                yield ProgressBar(total=status.steps, completed=status.global_step, width=min(BAR_WIDTH, width))
                yield Text("")  # the bar does not end its line
            yield from _texts([run_text.progress(status), *self._curve(width), *run_text.training_metrics(status)])
            yield from _texts([*run_text.checkpoint(status), *run_text.best(status)])
        yield from _texts([*run_text.evaluation(status), *run_text.metrics(status)])

    def _curve(self, width: int) -> List[str]:
        losses = [point.loss for point in self._status.history.points]
        bars = sparkline(losses, min(SPARKLINE_WIDTH, width - len("loss ")))
        return [f"loss {bars}"] if bars else []

    def _troubles(self, console: Console, options: ConsoleOptions) -> List[RenderableType]:
        status = self._status
        lines = [*run_text.formation(status), *run_text.silence(status), *run_text.slowness(status)]
        lines += run_text.troubles(status)
        return [*_texts(lines, "yellow"), *self._incidents(console, options)]

    def _incidents(self, console: Console, options: ConsoleOptions) -> Sequence[RenderableType]:
        for most in range(MOST_INCIDENTS, 0, -1):
            parts = list(_texts(run_end.what_happened(self._status, most)))
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

    def __enter__(self) -> "View":
        self._draw()
        return self

    def __exit__(self, *_: object) -> None:
        self._terminal.close()

    def _draw(self) -> None:
        self._terminal.enter_context(unechoed(sys.stdin))  # an echoed ^C would damage the picture
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
        self._live.update(Picture(status, self._console.height))


def for_terminal() -> View:
    """Return the view that suits stdout."""
    return LiveView() if sys.stdout.isatty() else View()


def print_status(status: RunStatus, wide: bool = False) -> None:
    """Print ``launch status`` for a person; outside a terminal, or with ``wide``, with every task and column."""
    console = make_console(wide)
    whole = wide or not sys.stdout.isatty()
    console.print(Picture(status, height=None if whole else console.height, wide=whole))
    if status.cause:
        console.print(Text(f"cause: {status.cause}"))
