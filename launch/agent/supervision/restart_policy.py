"""The tasks that get another attempt, and when.

A task that failed waits for a pause, which doubles with each of its failures. Tasks that do not wait cost nothing
here, whatever their number.
"""

import heapq
from typing import List, Optional, Tuple

from launch.agent.protocol.messages import Exited
from launch.agent.supervision.incidents import Incidents
from launch.agent.supervision.task_records import Roster, TaskRecord
from launch.agent.wire.run_request import RunPlan

LONGEST_PAUSE_S = 60.0  # before a task's next attempt, unless it begins with more
MOST_DOUBLINGS = 20  # of that pause; a power of two of thousands is no float


class Restarts:
    """The next attempts of tasks. Times are seconds on the clock of the supervisor."""

    def __init__(self, plan: RunPlan, roster: Roster, incidents: Incidents) -> None:
        self._plan, self._roster, self._incidents = plan, roster, incidents
        self._next: List[Tuple[float, int, TaskRecord]] = []
        self._count = 0  # so that of two at the same time the first that was put comes first

    def put(self, task: TaskRecord, at: float) -> None:
        """Schedule the task's next attempt, in place of a time set before."""
        self._roster.turn(task, "restarting", process=False)
        task.restart_at = at
        self._count += 1
        heapq.heappush(self._next, (at, self._count, task))

    def put_failed(self, task: TaskRecord, event: Exited, now: float) -> Optional[str]:
        """Schedule the next attempt of a failed task; return the cause for which the run fails instead.

        The result is None, too, for an evaluator without a further attempt: training goes on without it.
        """
        incident, attempts = self._incidents.record_exit(event, now), self._plan.restart_max + 1
        task.cause = event.cause
        if may_mend(event) and task.failures < self._plan.restart_max:
            wait_s = pause_s(task.failures, self._plan.backoff_s)
            self.put(task, now + wait_s)
            task.failures += 1
            what = f"{task.plan.name} restarted after {wait_s:.1f} s, attempt {task.failures + 1} of {attempts}"
            self._incidents.record_action(what, now, incident)
            return None
        self._roster.turn(task, "failed", process=False)
        return None if task.plan.role == "evaluator" else self._incidents.blame_task(event, incident, attempts)

    def pop_due(self, now: float) -> List[TaskRecord]:
        """Remove and return the tasks that still wait and whose next attempt is due."""
        found: List[TaskRecord] = []
        while self._next and self._next[0][0] <= now:
            at, _, task = heapq.heappop(self._next)
            if task.state == "restarting" and task.restart_at == at:
                task.restart_at = None
                found.append(task)
        return found


def may_mend(event: Exited) -> bool:
    """Return whether another attempt of a failed task may end otherwise."""
    outcome = event.outcome or {}
    return bool(event.retry and outcome.get("retry", True) and event.exit_code is not None)


def pause_s(failures: int, backoff_s: float) -> float:
    """Return the seconds to wait before a task's next attempt.

    Each pause is twice as long as the one before, up to ``LONGEST_PAUSE_S``, or ``backoff_s`` where that is longer.
    """
    return min(backoff_s * 2.0 ** min(failures, MOST_DOUBLINGS), max(backoff_s, LONGEST_PAUSE_S))
