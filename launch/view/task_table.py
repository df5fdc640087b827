"""The table of a run's tasks, one line each: the tasks and the columns that fit, without empty columns."""

from collections import Counter
from typing import Any, Callable, List, Mapping, Optional, Sequence, Tuple

from rich.table import Table
from rich.text import Text

from launch.status.run import RunStatus
from launch.status.task import TASK_NUMBERS, Heading, Number, TaskStatus
from launch.view.console import GAP, Column, fitting, needed, of_bytes

COLOURS = {"running": "green", "succeeded": "green", "failed": "red", "lost": "red", "restarting": "yellow"}
URGENT = {"failed": 0, "lost": 0, "restarting": 1}
MARKED, HAD_TROUBLE, WAITS, WELL = 2, 3, 4, 5  # less urgent
Rank = Callable[[TaskStatus], int]


def task_table(rows: Sequence[TaskStatus], width: Optional[int] = None) -> Table:
    """Return a table with one row for each task.

    Args:
      width: the most characters of a line; None for no limit.
    """
    columns = needed(COLUMNS, rows)
    natural = [max([len(c.heading), *(c.cell(task).cell_len for task in rows)]) for c in columns]
    table = Table(box=None, padding=(0, GAP, 0, 0))  # with the edge, where versions of rich differ
    shown = [(c, given) for c, given in zip(columns, fitting(columns, natural, width)) if given]
    for column, given in shown:
        justify: Any = "right" if column.is_number else "left"
        table.add_column(column.heading, justify=justify, width=given, no_wrap=True, overflow="ellipsis")
    for task in rows:
        table.add_row(*(column.cell(task) for column, _ in shown))
    return table


def divided(tasks: Sequence[TaskStatus], most: Optional[int], rank: Rank) -> Tuple[List[TaskStatus], List[TaskStatus]]:
    """Return the tasks that have a row in a table of ``most`` lines, and the tasks that the table leaves out.

    Where all tasks fit, their order stays. Otherwise the tasks of lower rank come first, and the table's last line
    counts the tasks that it leaves out.
    """
    if most is None or len(tasks) <= most:
        return list(tasks), []
    ordered, rows = sorted(tasks, key=rank), max(1, most - 1)
    return ordered[:rows], ordered[rows:]


def count_left_out(rest: Sequence[TaskStatus]) -> List[str]:
    """Return a line about ``rest``, the tasks that a table leaves out: ``… and 176 more: 176 running``."""
    states = Counter(task.state for task in rest)
    listed = ", ".join(f"{number} {state}" for state, number in states.items())
    return [f"… and {len(rest)} more: {listed}"] if rest else []


def urgency(status: RunStatus) -> Rank:
    """Return a function that ranks tasks: first tasks in trouble now, then tasks with trouble earlier in the run."""
    troubled = {incident.title for incident in status.incidents}  # tasks, and hosts

    def rank(task: TaskStatus) -> int:
        had_trouble = task.restarts or task.title in troubled or task.host in troubled
        calm = HAD_TROUBLE if had_trouble else WAITS if task.state in ("starting", "stopped") else WELL
        return URGENT.get(task.state, MARKED if task.mark else calm)

    return rank


def _state(task: TaskStatus) -> Text:
    mark = f" ({task.mark})" if task.mark else ""
    doing = f": {task.doing}" if task.doing else ""
    return Text.assemble((task.state, COLOURS.get(task.state, "")), (mark, "yellow"), doing)


def _column(number: Number, heading: Heading) -> Column[TaskStatus, Text]:
    """Return the column of a number, which is shown where a task has another value than at its start."""
    field, text = number.field, TEXTS.get(number.unit, str)

    def cell(task: TaskStatus) -> Text:
        value = getattr(task, field)
        return Text("-" if value is None else text(value))

    def is_news(task: TaskStatus) -> Any:
        return getattr(task, field) != getattr(TaskStatus, field)

    return Column(heading.text, heading.rank, cell, is_number=True, shown_for=is_news)


TEXTS: Mapping[str, Callable[[Any], str]] = {"ms": "{:.1f}".format, "%": "{:.0f} %".format, "bytes": of_bytes}
PLACES: Mapping[int, Column[TaskStatus, Text]] = {
    0: Column("task", 0, lambda task: Text(task.name)),
    1: Column("host", 2, lambda task: Text(task.host), least=12),
    2: Column("state", 1, _state, least=17),
    6: Column(
        "gpus", 5, lambda task: Text(",".join(map(str, task.gpus)) or "cpu"), shown_for=lambda task: bool(task.gpus)
    ),
    11: Column("address", 12, lambda task: Text(task.address)),  # as Text: rich would read an IPv6 address as markup
    99: Column("cause", 7, lambda task: Text(task.cause or ""), least=20, shown_for=lambda task: bool(task.cause)),
    **{each.heading.place: _column(each, each.heading) for each in TASK_NUMBERS if each.heading},
}
COLUMNS = [PLACES[place] for place in sorted(PLACES)]
