"""The last lines of tasks' logs, as the page of a run has them: bounded in number, length and time."""

from typing import Any, Dict, List, Sequence, Tuple

from cluster.protocol.quantity import quantity
from launch.fleet import AnyTask, Fleet
from launch.logs.task_logs import print_logs, select
from launch.page.run_page import clean, lines_of_each

MOST_TASKS = 32  # whose logs the page has, unless the user names more
PATIENCE_S = 30.0  # with a host that has been asked


def chosen(fleet: Fleet, patterns: Sequence[str]) -> List[AnyTask]:
    """Return the tasks whose logs the page has: those that are named, else the chief and the first others.

    Raises:
      UsageError: a pattern means no task.
    """
    tasks = select(fleet.tasks, patterns)
    return tasks if patterns else sorted(tasks, key=_is_not_chief)[:MOST_TASKS]


def _is_not_chief(task: AnyTask) -> Tuple[bool, bool]:
    """Return the order of tasks: a chief first, without one the first worker."""
    return task.role != "chief", (task.role, task.index) != ("worker", 0)


def last_lines(fleet: Fleet, tasks: Sequence[AnyTask], patience_s: float = PATIENCE_S) -> Dict[str, Any]:
    """Return ``lines``, the last lines by time, and ``missing``, the reasons why some are not there."""
    lines: List[str] = []
    problems = print_logs(
        fleet, tasks, lambda line: lines.append(clean(line)), raw=True, tail=lines_of_each(len(tasks)),
        patience_s=patience_s,
    )  # fmt: skip
    missing = [f"{problem}" for problem in problems]
    left_out = len(fleet.tasks) - len(tasks)
    if left_out:
        missing.append(
            f"left out: the logs of {quantity(left_out, 'more task')}; name tasks after FILE to choose others"
        )
    return {"lines": lines, "missing": missing}
