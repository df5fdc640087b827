"""The order in which the tasks of a run end once its result is known.

Workers end first, then the ps: a worker that closes its session needs its ps. After a success the tasks may leave by
themselves for ``leave_s``. Meanwhile the lead orders only those tasks to end that never would by themselves. These are
the evaluator of a job, and the ps of programs of others once everybody else has left. A job's evaluator ends its
measurement within ``leave_s``. Only the exit of a program's evaluator shows that the evaluator has finished.
"""

import signal
from typing import List, Mapping, Optional, Set

from launch.agent.protocol.messages import Exited, Order, Stop
from launch.agent.supervision.record import TaskRecord
from launch.agent.wire.run_plan import RunPlan

EVALUATOR, WORKERS, PS = "evaluator", "workers", "ps"  # groups that are told to end; the workers are all but the ps


class Leaving:
    """The end of one run.

    ``told`` has the names of the tasks that were ordered to end.
    """

    def __init__(self, plan: RunPlan, tasks: Mapping[str, TaskRecord]):
        self.told: Set[str] = set()
        self._plan, self._tasks = plan, tasks
        self._succeeded = False
        self._began_at = self._leave_by = 0.0
        self._group: Optional[str] = None  # that was told last

    def begin(self, result: str, now: float) -> None:
        """Begin the end of the run, whose result is known."""
        self._succeeded, self._began_at = result == "succeeded", now
        self._leave_by = now + self._plan.leave_s if self._succeeded else now

    def following(self, processes: Mapping[str, int], now: float) -> List[Order]:
        """Return the orders to the tasks that are to end now.

        ``processes`` is the number of processes by role.
        """
        group = self._due(processes, now)
        if group == self._group:
            return []
        self._group = group
        tasks = [task for task in self._tasks.values() if task.process and self._is_of(task, group)]
        chosen = [task for task in tasks if task.plan.name not in self.told]
        self.told.update(task.plan.name for task in chosen)
        grace_s = max(self._plan.leave_s, self._plan.grace_s) if group == EVALUATOR else self._plan.grace_s
        return [Stop(task.plan.name, grace_s, task.attempt) for task in chosen]

    def was_cut(self, event: Exited) -> bool:
        """Return whether an evaluator was ended at its work.

        The evaluator of a job ends by SIGTERM only when it measures nothing.
        """
        return event.task in self.told and (self._plan.judge == "exit" or event.exit_code != -signal.SIGTERM)

    def cut_short(self, task: TaskRecord, now: float) -> str:
        """Return why an evaluator that was ordered to end may have missed the last checkpoint."""
        given = f"ended {now - self._began_at:.0f} s after the run had succeeded, before it left by itself"
        measured = "" if self._plan.judge == "exit" else f" (it had measured step {task.progress.get('step') or 0})"
        return f"{given}{measured}; a larger leave_s gives it more time"

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
