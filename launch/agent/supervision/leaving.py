"""In which order the tasks of a run end once its result is known.

Workers first, then the ps: a worker that closes its session needs its ps. After a success the tasks may leave by
themselves for ``leave_s``; meanwhile only those are told to end that never would: the evaluator of a job,
and the ps of programs of others once everybody else has left.
"""

from typing import List, Mapping, Optional, Set

from launch.agent.messages import RunPlan
from launch.agent.supervision.record import TaskRecord

EVALUATOR, WORKERS, PS = "evaluator", "workers", "ps"  # groups that are told to end; the workers are all but the ps


class Leaving:
    """The end of one run. ``told``: the tasks that were told to end, by name."""

    def __init__(self, plan: RunPlan, tasks: Mapping[str, TaskRecord]):
        self.told: Set[str] = set()
        self._plan, self._tasks = plan, tasks
        self._succeeded = False
        self._leave_by = 0.0
        self._group: Optional[str] = None  # that was told last

    def begin(self, result: str, now: float) -> None:
        """The result is known."""
        self._succeeded = result == "succeeded"
        self._leave_by = now + self._plan.leave_s if self._succeeded else now

    def following(self, processes: Mapping[str, int], now: float) -> List[TaskRecord]:
        """The tasks that are to be told to end now; ``processes`` is how many there are by role."""
        group = self._due(processes, now)
        if group == self._group:
            return []
        self._group = group
        tasks = [task for task in self._tasks.values() if task.process and self._is_of(task, group)]
        chosen = [task for task in tasks if task.plan.name not in self.told]
        self.told.update(task.plan.name for task in chosen)
        return chosen

    def _due(self, processes: Mapping[str, int], now: float) -> Optional[str]:
        """The group whose turn it is; None while everybody may still leave."""
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
