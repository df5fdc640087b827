"""The tasks of a run, by name and by host, and how many are in which state.

A run may have thousands of tasks, and each tells of its progress every second. So what the rules ask
about all tasks is counted as it changes, and no report of a task looks at the others.
"""

from collections import Counter
from typing import Dict, List, Optional

from launch.agent.supervision.record import TaskRecord, record_of
from launch.agent.supervision.success import deciding
from launch.agent.wire.run_plan import RunPlan
from launch.status.states import ALIVE


class Roster:
    """The tasks of one run; ``processes`` counts those of them that may have one, by role."""

    def __init__(self, plan: RunPlan):
        self.by_name: Dict[str, TaskRecord] = {task.name: record_of(task) for task in plan.tasks}
        self.on: Dict[str, List[TaskRecord]] = {host: [] for host in plan.hosts}
        for task in self.by_name.values():
            self.on[task.plan.host].append(task)
        self.processes: Dict[str, int] = Counter()
        self._states = Counter(task.state for task in self.by_name.values())
        self._undecided = deciding(plan)

    def turn(self, task: TaskRecord, state: str, process: bool) -> None:
        """A task is in this state from now on; ``process``: whether a process of it may exist."""
        self._states[task.state] -= 1
        self._states[state] += 1
        self.processes[task.plan.role] += process - task.process
        task.state, task.process = state, process
        if state == "succeeded":
            self._undecided.discard(task.plan.name)

    def number(self, *states: str) -> int:
        """How many tasks are in one of these states."""
        return sum(self._states[state] for state in states)

    @property
    def have_succeeded(self) -> bool:
        """Whether every task has that decides about the run."""
        return not self._undecided

    @property
    def chief(self) -> Optional[TaskRecord]:
        """The task that saves; None where none of them does."""
        return next((task for task in self.by_name.values() if task.plan.chief), None)

    def running(self) -> List[TaskRecord]:
        """Those of which a process may exist."""
        return [task for task in self.by_name.values() if task.process]

    def waiting(self) -> List[TaskRecord]:
        """Those that have no process, and are to have one."""
        return [task for task in self.by_name.values() if task.state in ALIVE and not task.process]
