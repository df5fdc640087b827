"""The tasks of a run as a table: one line a task, and the columns for which there is room.

Columns give way by their rank. The name of a task is never cut.
"""

from collections import Counter
from dataclasses import replace
from typing import Any, Callable, List, Optional, Sequence

from rich.table import Table
from rich.text import Text

from launch.status.task import TaskStatus
from launch.view.console import GAP, Column, fitting, of_bytes

COLOURS = {"running": "green", "succeeded": "green", "failed": "red", "lost": "red", "restarting": "yellow"}
URGENCY = {"failed": 0, "lost": 0, "restarting": 1, "stopped": 3, "starting": 3}


def task_table(tasks: Sequence[TaskStatus], width: Optional[int] = None, most: Optional[int] = None) -> Table:
    """Return a table with one row a task.

    Args:
      width: the most characters of a line; None for as many as there are.
      most: the most rows; None for all tasks. Of more tasks, the table has those in trouble first, and counts the rest.
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
    return URGENCY.get(task.state, 2 if task.straggler else 4)


def _state(task: TaskStatus) -> Text:
    slow = " (slow)" if task.straggler else ""
    doing = f": {task.doing}" if task.doing else ""
    return Text.assemble((task.state, COLOURS.get(task.state, "")), (slow, "yellow"), doing)


def _number(
    heading: str, rank: int, field: str, text: Callable[[Any], str] = str, if_known: bool = False
) -> Column[TaskStatus, Text]:
    """Return the column of a number that may be unknown; with ``if_known``, it is there if any task's is known."""

    def known(task: TaskStatus) -> bool:
        return getattr(task, field) is not None

    def cell(task: TaskStatus) -> Text:
        return Text(text(getattr(task, field)) if known(task) else "-")

    return Column(heading, rank, cell, is_number=True, shown_for=known if if_known else None)


_MILLISECONDS, _PERCENT = "{:.1f}".format, "{:.0f} %".format
COLUMNS: Sequence[Column[TaskStatus, Text]] = (
    Column("task", 0, lambda task: Text(task.name)),
    Column("host", 2, lambda task: Text(task.host), least=12),
    Column("state", 1, _state, least=17),
    _number("step", 3, "step"),
    _number("ms/step", 4, "step_time_ms", _MILLISECONDS),
    _number("waits ms", 9, "wait_ms", _MILLISECONDS, if_known=True),
    Column("gpus", 5, lambda task: Text(",".join(map(str, task.gpus)) or "cpu")),
    _number("gpu use", 10, "gpu_percent", _PERCENT, if_known=True),
    _number("gpu memory", 11, "gpu_memory_bytes", of_bytes, if_known=True),
    _number("restarts", 6, "restarts"),
    _number("pid", 8, "pid"),
    Column("address", 12, lambda task: Text(task.address)),  # as Text: one of IPv6 would be taken for markup
    _number("in/s", 13, "bytes_in_per_second", of_bytes, if_known=True),
    _number("out/s", 14, "bytes_out_per_second", of_bytes, if_known=True),
    replace(_number("dropped", 15, "dropped_gradients"), shown_for=lambda task: task.dropped_gradients > 0),
    Column("cause", 7, lambda task: Text(task.cause or ""), least=20, shown_for=lambda task: bool(task.cause)),
)
