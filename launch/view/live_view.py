"""The view of an attached run in a terminal: a picture that fits the terminal, redrawn as the run changes.

The most important lines come first, then as many tasks as fit, one line each. The table has the columns that fit, by
their rank. The name of a task is never cut. Outside a terminal, ``plain_view`` prints lines.
"""

import sys
from collections import Counter
from contextlib import ExitStack, contextmanager
from typing import Any, Callable, Iterable, Iterator, List, Mapping, Optional, Sequence

from rich.console import Console, ConsoleOptions, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from launch.agent.text import without_controls
from launch.status import incident_status
from launch.status.run import RunStatus
from launch.status.task import TASK_NUMBERS, Heading, Number, TaskStatus
from launch.view import run_text
from launch.view.console import GAP, Column, fitting, make_console, of_bytes, unechoed
from launch.view.loss_curve import LossCurve, sparkline
from launch.view.plain_view import View

BAR_WIDTH = 60
SPARKLINE_WIDTH = 40
MOST_INCIDENTS = 3
INCIDENTS_SHARE = 0.4  # of the lines, at most; at least one incident is shown
LEAST_ROWS = 3
BELOW = 1  # the line of the cursor
COLOURS = {"running": "green", "succeeded": "green", "failed": "red", "lost": "red", "restarting": "yellow"}
URGENCY = {"failed": 0, "lost": 0, "restarting": 1, "stopped": 3, "starting": 3}


def task_table(tasks: Sequence[TaskStatus], width: Optional[int] = None, most: Optional[int] = None) -> Table:
    """Return a table with one row for each task.

    Args:
      width: the most characters of a line; None for no limit.
      most: the most rows; None for all tasks. With more tasks, the table has the tasks in trouble first, and counts the
        rest.
    """
    rows = list(tasks) if most is None or len(tasks) <= most else sorted(tasks, key=_urgency)[: max(1, most - 1)]
    columns = [c for c in COLUMNS if c.shown_for is None or any(map(c.shown_for, rows))]
    natural = [max([len(c.heading), *(c.cell(task).cell_len for task in rows)]) for c in columns]
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
    shown = [(c, given) for c, given in zip(columns, fitting(columns, natural, width)) if given]
    for column, given in shown:
        justify: Any = "right" if column.is_number else "left"
        table.add_column(column.heading, justify=justify, width=given, no_wrap=True, overflow="ellipsis")
    for task in rows:
        table.add_row(*(column.cell(task) for column, _ in shown))
    return table


def left_out(tasks: Sequence[TaskStatus], most: Optional[int]) -> List[str]:
    """Return a line about the tasks that a table of ``most`` rows leaves out: ``… and 176 more: 176 running``."""
    if most is None or len(tasks) <= most:
        return []
    rest = sorted(tasks, key=_urgency)[max(1, most - 1) :]
    states = Counter(task.state for task in rest)
    return [f"… and {len(rest)} more: {', '.join(f'{number} {state}' for state, number in states.items())}"]


def _urgency(task: TaskStatus) -> int:
    return URGENCY.get(task.state, 2 if task.mark else 4)


def _state(task: TaskStatus) -> Text:
    mark = f" ({task.mark})" if task.mark else ""
    doing = f": {task.doing}" if task.doing else ""
    return Text.assemble((task.state, COLOURS.get(task.state, "")), (mark, "yellow"), doing)


def _column(number: Number, heading: Heading) -> Column[TaskStatus, Text]:
    """Return the column of a number."""
    field, text = number.field, TEXTS.get(number.unit, str)

    def cell(task: TaskStatus) -> Text:
        value = getattr(task, field)
        return Text("-" if value is None else text(value))

    def is_news(task: TaskStatus) -> Any:
        return getattr(task, field) != getattr(TaskStatus, field)

    return Column(heading.text, heading.rank, cell, is_number=True, shown_for=is_news if heading.seldom else None)


TEXTS: Mapping[str, Callable[[Any], str]] = {"ms": "{:.1f}".format, "%": "{:.0f} %".format, "bytes": of_bytes}
PLACES: Mapping[int, Column[TaskStatus, Text]] = {
    0: Column("task", 0, lambda task: Text(task.name)),
    1: Column("host", 2, lambda task: Text(task.host), least=12),
    2: Column("state", 1, _state, least=17),
    6: Column("gpus", 5, lambda task: Text(",".join(map(str, task.gpus)) or "cpu")),
    11: Column("address", 12, lambda task: Text(task.address)),  # as Text: rich would read an IPv6 address as markup
    99: Column("cause", 7, lambda task: Text(task.cause or ""), least=20, shown_for=lambda task: bool(task.cause)),
    **{each.heading.place: _column(each, each.heading) for each in TASK_NUMBERS if each.heading},
}
COLUMNS = [PLACES[place] for place in sorted(PLACES)]


class Picture:
    """A picture of a run, which rich draws.

    Args:
      losses: the losses so far, for the curve.
      height: the available lines; None for as many as the picture needs.
      wide: whether every column is shown in full, however long a line becomes.
    """

    def __init__(
        self, status: RunStatus, losses: Sequence[float] = (), height: Optional[int] = None, wide: bool = False
    ):
        self._status, self._losses, self._height, self._wide = status, losses, height, wide

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Draw the head, the problems, and the table of tasks in the remaining lines."""
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
            yield from _texts(run_text.starting(status))
        else:
            if status.steps:
                yield ProgressBar(total=status.steps, completed=status.global_step, width=min(BAR_WIDTH, width))
                yield Text("")  # the bar does not end its line
            yield from _texts([run_text.progress(status), *self._curve(width), *run_text.training_metrics(status)])
            yield from _texts([*run_text.checkpoint(status), *run_text.best(status)])
        yield from _texts([*run_text.evaluation(status), *run_text.metrics(status)])

    def _curve(self, width: int) -> List[str]:
        bars = sparkline(self._losses, min(SPARKLINE_WIDTH, width - len("loss ")))
        return [f"loss {bars}"] if bars else []

    def _troubles(self, console: Console, options: ConsoleOptions) -> List[RenderableType]:
        status = self._status
        lines = [*run_text.formation(status), *run_text.silence(status), *run_text.slowness(status)]
        lines += run_text.troubles(status)
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
        self._curve.add(status)
        losses = [loss for _, loss in self._curve.points]
        self._live.update(Picture(status, losses, self._console.height))


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
