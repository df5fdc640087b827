"""The tasks of a run as a table: one row a task, and only the columns that have content."""

from typing import Any, Callable, List, NamedTuple, Optional

from rich.table import Table
from rich.text import Text

from launch.status.task import TaskStatus
from launch.view.units import of_bytes

MOST_ROWS = 24
COLOURS = {"running": "green", "succeeded": "green", "failed": "red", "lost": "red", "restarting": "yellow"}


class Column(NamedTuple):
    """A column of the table of tasks.

    ``cell`` returns a task's text. A column with ``shown_for`` is there if ``shown_for`` holds for any task.
    """

    heading: str
    cell: Callable[[TaskStatus], Text]
    justify: Any = "left"
    shown_for: Optional[Callable[[TaskStatus], bool]] = None


def task_table(tasks: List[TaskStatus], most: int = MOST_ROWS) -> Table:
    """Return a table with one row a task.

    Of many tasks, the table has first those that do not simply run.
    """
    columns = [c for c in COLUMNS if c.shown_for is None or any(map(c.shown_for, tasks))]
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column.heading, justify=column.justify)
    rows = tasks if len(tasks) <= most else sorted(tasks, key=_is_ordinary)[:most]
    for task in rows:
        table.add_row(*(column.cell(task) for column in columns))
    if len(tasks) > len(rows):
        table.add_row(f"… and {len(tasks) - len(rows)} more")
    return table


def _is_ordinary(task: TaskStatus) -> bool:
    return task.state == "running" and not task.straggler


def _state(task: TaskStatus) -> Text:
    slow = " (slow)" if task.straggler else ""
    doing = f": {task.doing}" if task.doing else ""
    return Text.assemble((task.state, COLOURS.get(task.state, "")), doing, (slow, "yellow"))


def _gpus(task: TaskStatus) -> Text:
    return Text(",".join(map(str, task.gpus)) or "cpu")


def _number(value: Optional[int]) -> Text:
    return Text("-" if value is None else str(value))


def _milliseconds(value: Optional[float]) -> Text:
    return Text("-" if value is None else f"{value:.1f}")


def _bytes(value: Optional[float]) -> Text:
    return Text("-" if value is None else of_bytes(value))


def _percent(value: Optional[float]) -> Text:
    return Text("-" if value is None else f"{value:.0f} %")


COLUMNS = (
    Column("task", lambda task: Text(task.title)),
    Column("state", _state),
    Column("address", lambda task: Text(task.address)),  # as Text: one of IPv6 would be taken for markup
    Column("gpus", _gpus),
    Column("pid", lambda task: _number(task.pid), "right"),
    Column("restarts", lambda task: _number(task.restarts), "right"),
    Column("step", lambda task: _number(task.step), "right"),
    Column("ms/step", lambda task: _milliseconds(task.step_time_ms), "right"),
    Column("waits ms", lambda task: _milliseconds(task.wait_ms), "right", lambda task: task.wait_ms is not None),
    Column(
        "in/s",
        lambda task: _bytes(task.bytes_in_per_second),
        "right",
        lambda task: task.bytes_in_per_second is not None,
    ),
    Column(
        "out/s",
        lambda task: _bytes(task.bytes_out_per_second),
        "right",
        lambda task: task.bytes_out_per_second is not None,
    ),
    Column("gpu use", lambda task: _percent(task.gpu_percent), "right", lambda task: task.gpu_percent is not None),
    Column(
        "gpu memory",
        lambda task: _bytes(task.gpu_memory_bytes),
        "right",
        lambda task: task.gpu_memory_bytes is not None,
    ),
    Column("dropped", lambda task: _number(task.dropped_gradients), "right", lambda task: task.dropped_gradients > 0),
    Column("cause", lambda task: Text(task.cause or ""), "left", lambda task: bool(task.cause)),
)
