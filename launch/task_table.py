"""The tasks of a run as a table: one row a task, and only the columns that say something."""

from typing import Any, Callable, List, Mapping, NamedTuple, Optional

from rich.table import Table
from rich.text import Text

from launch.amounts import of_bytes

MOST_ROWS = 24
COLOURS = {"running": "green", "succeeded": "green", "failed": "red", "lost": "red", "restarting": "yellow"}
Task = Mapping[str, Any]


class Column(NamedTuple):
    """``cell`` gives a task's text. A column with ``shown_for`` is there if that holds for any task."""

    heading: str
    cell: Callable[[Task], Text]
    justify: Any = "left"
    shown_for: Optional[Callable[[Task], bool]] = None


def name_of(task: Task) -> str:
    """``worker:1``"""
    return f"{task['role']}:{task['index']}"


def title(task: Task) -> str:
    """``worker:1@gpu02``"""
    return f"{name_of(task)}@{task['host']}"


def task_table(tasks: List[Task], most: int = MOST_ROWS) -> Table:
    """One row a task; of many those first that do not simply run."""
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


def _is_ordinary(task: Task) -> bool:
    return task["state"] == "running" and not task.get("straggler")


def _state(task: Task) -> Text:
    slow = " (slow)" if task.get("straggler") else ""
    doing = f": {task['doing']}" if task.get("doing") else ""
    return Text.assemble((task["state"], COLOURS.get(task["state"], "")), doing, (slow, "yellow"))


def _gpus(task: Task) -> Text:
    return Text(",".join(map(str, task["gpus"])) or "cpu")


def _number(field: str) -> Callable[[Task], Text]:
    return lambda task: Text("-" if task.get(field) is None else str(task[field]))


def _milliseconds(field: str) -> Callable[[Task], Text]:
    return lambda task: Text("-" if task.get(field) is None else f"{task[field]:.1f}")


def _bytes(field: str) -> Callable[[Task], Text]:
    return lambda task: Text("-" if task.get(field) is None else of_bytes(task[field]))


def _percent(field: str) -> Callable[[Task], Text]:
    return lambda task: Text("-" if task.get(field) is None else f"{task[field]:.0f} %")


def _known(field: str) -> Callable[[Task], bool]:
    return lambda task: task.get(field) is not None


COLUMNS = (
    Column("task", lambda task: Text(title(task))),
    Column("state", _state),
    Column("address", lambda task: Text(task["address"])),  # as Text: one of IPv6 would be taken for markup
    Column("gpus", _gpus),
    Column("pid", _number("pid"), "right"),
    Column("restarts", _number("restarts"), "right"),
    Column("step", _number("step"), "right"),
    Column("ms/step", _milliseconds("step_time_ms"), "right"),
    Column("waits ms", _milliseconds("wait_ms"), "right", _known("wait_ms")),
    Column("in/s", _bytes("bytes_in_per_second"), "right", _known("bytes_in_per_second")),
    Column("out/s", _bytes("bytes_out_per_second"), "right", _known("bytes_out_per_second")),
    Column("gpu use", _percent("gpu_percent"), "right", _known("gpu_percent")),
    Column("gpu memory", _bytes("gpu_memory_bytes"), "right", _known("gpu_memory_bytes")),
    Column("dropped", _number("dropped_gradients"), "right", lambda task: bool(task.get("dropped_gradients"))),
    Column("cause", lambda task: Text(task["cause"] or ""), "left", lambda task: bool(task["cause"])),
)
