"""Rule: restart the tasks that wait for their next attempt, each at its time, while the run trains.

A task that failed first waits for a pause, which doubles with each failure of the task. ``failures`` decides which
failures count, and after which failures a task is not restarted. The cost does not depend on the number of tasks that
do not wait.
"""

import heapq
from typing import Collection, List, Tuple

from cluster.protocol.failure_kinds import LOST_CONNECTION
from launch.agent.protocol.messages import Event, Exited, Order, Stop
from launch.agent.supervision.elastic import Formations
from launch.agent.supervision.failures import AGAIN, QUICK_S, is_calm
from launch.agent.supervision.run_state import SupervisedRun, SupervisionRule
from launch.agent.supervision.task_records import TaskRecord

LONGEST_PAUSE_S = 60.0  # before a task's next attempt, unless ``backoff_s`` is longer
MOST_DOUBLINGS = 20  # of that pause; 2 to the power of thousands is no float


class Restarts(SupervisionRule):
    """The rule that restarts waiting tasks at their times, in seconds on the clock of the supervisor."""

    def __init__(self, run: SupervisedRun, formations: Formations) -> None:
        super().__init__(run)
        self._formations = formations
        self._next: List[Tuple[float, int, TaskRecord]] = []
        self._count = 0  # orders tasks of the same time by their arrival

    def handle(self, event: Event, now: float) -> List[Order]:
        """Restart the tasks whose next attempt is due."""
        if not self._run.trains:
            return []
        due = self.pop_due(now)
        for task in due:
            task.attempt += 1
        orders: List[Order] = [self._formations.start_task(task) for task in due]
        if self._run.incidents.awaits_start and not self._run.roster.is_starting:
            self._run.incidents.go_on(now)
        return orders

    def recall(self, names: Collection[str], now: float) -> List[Order]:
        """Restart ``names``: order running tasks to end; let waiting tasks and a failed evaluator start now."""
        if not self._run.trains:
            return []
        chosen = [self._run.tasks[name] for name in names if name in self._run.tasks]
        for task in chosen:
            if task.state in ("restarting", "failed"):
                self.put(task, now)
        running = [task for task in chosen if task.process and not task.recalled]
        for task in running:
            task.recalled = True
        return [Stop(task.plan.name, self._run.plan.grace_s, task.attempt) for task in running]

    def put(self, task: TaskRecord, at: float) -> None:
        """Schedule the task's next attempt at the time ``at``, which replaces an earlier time."""
        self._run.roster.turn(task, "restarting", process=False)
        task.restart_at = at
        self._count += 1
        heapq.heappush(self._next, (at, self._count, task))

    def put_failed(self, task: TaskRecord, event: Exited, now: float) -> None:
        """Schedule the next attempt of a failed task; fail the run where the task may have no further attempt.

        Training continues without an evaluator that has no further attempt.
        """
        plan, incidents = self._run.plan, self._run.incidents
        task.failed.forgive(now, plan.restart_window_s)
        repeats = self._repeats(task, event, now)
        incident, attempts = incidents.record_exit(event, now), plan.restart_max + 1
        task.cause = event.cause
        if may_mend(event) and not repeats and task.failures < plan.restart_max:
            wait_s = pause_s(task.failures, plan.backoff_s)
            self.put(task, now + wait_s)
            task.failed.add(now)
            what = f"{task.plan.name} restarted after {wait_s:.1f} s, attempt {task.failures + 1} of {attempts}"
            incidents.record_action(what, now, incident)
            return
        self._run.roster.turn(task, "failed", process=False)
        why = AGAIN if repeats else ""
        if task.plan.role != "evaluator":
            self._run.close("failed", incidents.blame_task(event, incident, attempts, why), now)
        elif why:
            task.cause = f"{event.cause}{why}"

    def _repeats(self, task: TaskRecord, event: Exited, now: float) -> bool:
        """Return whether a failure repeats the one before, so that another attempt would end in the same way."""
        incidents, lived_s = self._run.incidents, now - (now if task.started_at is None else task.started_at)
        is_own = event.kind != LOST_CONNECTION and lived_s < QUICK_S and may_mend(event)
        is_same = task.failed.repeats(event.error if is_own else "", incidents.stalls.advances)
        heard = not self._run.misses_a_host  # a host that boots may be silent for minutes before it counts as lost
        return is_same and heard and is_calm(task.plan, event.error, incidents.statuses(), incidents.run_time(now))

    def pop_due(self, now: float) -> List[TaskRecord]:
        """Remove and return the waiting tasks whose next attempt is due."""
        found: List[TaskRecord] = []
        while self._next and self._next[0][0] <= now:
            at, _, task = heapq.heappop(self._next)
            if task.state == "restarting" and task.restart_at == at:
                task.restart_at = None
                found.append(task)
        return found


def may_mend(event: Exited) -> bool:
    """Return whether another attempt of a failed task may succeed."""
    outcome = event.outcome or {}
    return bool(event.retry and outcome.get("retry", True) and event.exit_code is not None)


def pause_s(failures: int, backoff_s: float) -> float:
    """Return the seconds to wait before the next attempt of a task, after ``failures`` earlier failures.

    Each pause is twice as long as the one before, up to ``LONGEST_PAUSE_S``, or ``backoff_s`` where that is longer.
    """
    return min(backoff_s * 2.0 ** min(failures, MOST_DOUBLINGS), max(backoff_s, LONGEST_PAUSE_S))
