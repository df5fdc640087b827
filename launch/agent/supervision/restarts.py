"""The queue of tasks that wait for a restart, the earliest first.

Tasks that do not wait cost nothing here, whatever their number.
"""

import heapq
from typing import List, Tuple

from launch.agent.supervision.record import TaskRecord


class Restarts:
    """The next attempts of tasks. Times are seconds on the clock of the supervisor."""

    def __init__(self) -> None:
        self._next: List[Tuple[float, int, TaskRecord]] = []
        self._count = 0  # so that of two at the same time the first that was put comes first

    def put(self, task: TaskRecord, at: float) -> None:
        """Schedule the task's next attempt, in place of a time set before."""
        task.restart_at = at
        self._count += 1
        heapq.heappush(self._next, (at, self._count, task))

    def due(self, now: float) -> List[TaskRecord]:
        """Remove and return the tasks that still wait and whose next attempt is due."""
        found: List[TaskRecord] = []
        while self._next and self._next[0][0] <= now:
            at, _, task = heapq.heappop(self._next)
            if task.state == "restarting" and task.restart_at == at:
                task.restart_at = None
                found.append(task)
        return found
