"""The end of tasks: their success, and the order in which they end once the run's result is known.

A task of a job reports its own success. A foreign program succeeds if it leaves with exit code 0, and nobody has
ordered it to end.

Workers end first, then the ps: a worker that closes its session needs its ps. After a success the tasks may leave by
themselves for ``leave_s``. Meanwhile the lead orders only those tasks to end that never would by themselves. These are
the evaluator of a job, and the ps of programs of others once everybody else has left. A job's evaluator ends its
measurement within ``leave_s``. Only the exit of a program's evaluator shows that the evaluator has finished.
"""

import signal
from dataclasses import replace
from typing import List, Mapping, Optional, Set

from launch.agent.protocol.messages import Exited, Order, Stop
from launch.agent.supervision.incident import CUT_SHORT
from launch.agent.supervision.task_records import TaskRecord
from launch.agent.wire.run_request import RunPlan

EVALUATOR, WORKERS, PS = "evaluator", "workers", "ps"  # groups that end together; the workers are all but the ps


class Ending:
    """The end of one run and of its tasks."""

    def __init__(self, plan: RunPlan, tasks: Mapping[str, TaskRecord]):
        self._plan, self._tasks = plan, tasks
        self._ordered: Set[str] = set()  # names of the tasks that were ordered to end
        self._succeeded = False
        self._began_at = self._leave_by = 0.0
        self._group: Optional[str] = None  # that was ordered last

    def begin(self, result: str, now: float) -> None:
        """Begin the end of the run, whose result is known."""
        self._succeeded, self._began_at = result == "succeeded", now
        self._leave_by = now + self._plan.leave_s if self._succeeded else now

    def next_orders(self, processes: Mapping[str, int], now: float) -> List[Order]:
        """Return the orders to the tasks that are to end now.

        ``processes`` is the number of processes by role.
        """
        group = self._due(processes, now)
        if group == self._group:
            return []
        self._group = group
        tasks = [task for task in self._tasks.values() if task.process and self._is_of(task, group)]
        chosen = [task for task in tasks if not self.was_ordered(task)]
        self._ordered.update(task.plan.name for task in chosen)
        grace_s = max(self._plan.leave_s, self._plan.grace_s) if group == EVALUATOR else self._plan.grace_s
        return [Stop(task.plan.name, grace_s, task.attempt) for task in chosen]

    def was_ordered(self, task: TaskRecord) -> bool:
        """Return whether a task was ordered to end because the run ends."""
        return task.plan.name in self._ordered

    def has_succeeded(self, task: TaskRecord, event: Exited, restarts: bool) -> bool:
        """Return whether a task whose process ended so has succeeded.

        ``restarts`` is True where the task was ordered to end for its next attempt. An evaluator that left for that
        has not succeeded, though its process then ends well, too.
        """
        if restarts and task.plan.role == EVALUATOR:
            return False
        ordered = self.was_ordered(task) or task.recalled or task.frozen is not None
        return means_success(event, self._plan.judge, ordered)

    def missed_work(self, task: TaskRecord, event: Exited, now: float) -> Optional[Exited]:
        """Return the end of an evaluator as a failure, where it missed work after the run had succeeded.

        The evaluator of a job ends by SIGTERM only when it measures nothing.
        """
        if not self._succeeded or task.plan.role != EVALUATOR:
            return None
        if not self.was_ordered(task):
            return event
        if self._plan.judge != "exit" and event.exit_code == -signal.SIGTERM:
            return None
        given = f"stopped {now - self._began_at:.0f} s after the run had succeeded, before it ended by itself"
        measured = "" if self._plan.judge == "exit" else f" (it had measured step {task.progress.get('step') or 0})"
        return replace(event, kind=CUT_SHORT, cause=f"{given}{measured}; a larger leave_s gives it more time")

    def _due(self, processes: Mapping[str, int], now: float) -> Optional[str]:
        """Return the group that is to end now; None while everybody may still leave."""
        first = WORKERS if any(number for role, number in processes.items() if role != "ps") else PS
        if not self._succeeded or now >= self._leave_by:
            return first
        if self._plan.judge == "outcome":
            return EVALUATOR  # the ps of a job leave by themselves, its evaluator does not
        return PS if first == PS else None

    @staticmethod
    def _is_of(task: TaskRecord, group: Optional[str]) -> bool:
        role = task.plan.role
        return role == group if group == EVALUATOR else (role == "ps") == (group == PS)


def means_success(event: Exited, judge: str, ordered: bool) -> bool:
    """Return whether a task has succeeded whose process ended so.

    ``ordered`` is True where somebody ordered it to end.
    """
    if judge == "exit":
        return event.exit_code == 0 and not ordered
    # The outcome is a task's last act: how its process went down after it does not matter.
    return bool(event.outcome and event.outcome.get("succeeded"))
