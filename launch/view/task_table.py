"""The tasks of a run as a table: one line a task, and the columns for which there is room.

Columns give way by their rank. The name of a task is never cut.
"""

from collections import Counter
from typing import Any, Callable, List, NamedTuple, Optional, Sequence

from rich.table import Table
from rich.text import Text

from launch.status.task import TaskStatus
from launch.view.console import GAP, Room, fitting, of_bytes

COLOURS = {"running": "green", "succeeded": "green", "failed": "red", "lost": "red", "restarting": "yellow"}
URGENCY = {"failed": 0, "lost": 0, "restarting": 1, "stopped": 3, "starting": 3}


class Column(NamedTuple):
    """A column of the table of tasks.

    Attributes:
      heading: its first line.
      rank: of two columns, the one with the higher rank gives way.
      cell: return a task's text.
      least: the width to which the column may be cut, its texts with an ellipsis; None for a column never cut.
      shown_for: the column is there if this holds for any task; None for a column that is always there.
    """

    heading: str
    rank: int
    cell: Callable[[TaskStatus], Text]
    justify: Any = "left"
    least: Optional[int] = None
    shown_for: Optional[Callable[[TaskStatus], bool]] = None


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
    rooms = fitting([Room(c.rank, c.least) for c in columns], natural, width)
    shown = [(c, given) for c, given in zip(columns, rooms) if given]
    for column, given in shown:
        table.add_column(column.heading, justify=column.justify, width=given, no_wrap=True, overflow="ellipsis")
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


def _number(field: str, text: Callable[[Any], str] = str) -> Callable[[TaskStatus], Text]:
    """Return the cell of a number that may be unknown."""

    def cell(task: TaskStatus) -> Text:
        value = getattr(task, field)
        return Text("-" if value is None else text(value))

    return cell


def _known(field: str) -> Callable[[TaskStatus], bool]:
    return lambda task: getattr(task, field) is not None


_MILLISECONDS, _PERCENT = "{:.1f}".format, "{:.0f} %".format
COLUMNS = (
    Column("task", 0, lambda task: Text(task.name)),
    Column("host", 2, lambda task: Text(task.host), least=12),
    Column("state", 1, _state, least=17),
    Column("step", 3, _number("step"), "right"),
    Column("ms/step", 4, _number("step_time_ms", _MILLISECONDS), "right"),
    Column("waits ms", 9, _number("wait_ms", _MILLISECONDS), "right", shown_for=_known("wait_ms")),
    Column("gpus", 5, lambda task: Text(",".join(map(str, task.gpus)) or "cpu")),
    Column("gpu use", 10, _number("gpu_percent", _PERCENT), "right", shown_for=_known("gpu_percent")),
    Column("gpu memory", 11, _number("gpu_memory_bytes", of_bytes), "right", shown_for=_known("gpu_memory_bytes")),
    Column("restarts", 6, _number("restarts"), "right"),
    Column("pid", 8, _number("pid"), "right"),
    Column("address", 12, lambda task: Text(task.address)),  # as Text: one of IPv6 would be taken for markup
    Column("in/s", 13, _number("bytes_in_per_second", of_bytes), "right", shown_for=_known("bytes_in_per_second")),
    Column("out/s", 14, _number("bytes_out_per_second", of_bytes), "right", shown_for=_known("bytes_out_per_second")),
    Column("dropped", 15, _number("dropped_gradients"), "right", shown_for=lambda task: task.dropped_gradients > 0),
    Column("cause", 7, lambda task: Text(task.cause or ""), least=20, shown_for=lambda task: bool(task.cause)),
)
