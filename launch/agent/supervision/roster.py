"""A run's tasks by name and by host, and their number in each state.

A run may have thousands of tasks, and each reports its progress every second. So the roster counts, at
each change, the numbers that the rules need. No report of a task looks at the others.
"""

from collections import Counter
from typing import Dict, List, Optional

from launch.agent.supervision.record import TaskRecord, record_of
from launch.agent.supervision.success import deciding
from launch.agent.wire.run_plan import RunPlan
from launch.status.states import ALIVE


class Roster:
    """The tasks of one run.

    ``processes`` counts, by role, the tasks that may have a process.
    """

    def __init__(self, plan: RunPlan):
        self.by_name: Dict[str, TaskRecord] = {task.name: record_of(task) for task in plan.tasks}
        self.by_host: Dict[str, List[TaskRecord]] = {host: [] for host in plan.hosts}
        for task in self.by_name.values():
            self.by_host[task.plan.host].append(task)
        self.processes: Dict[str, int] = Counter()
        self._states = Counter(task.state for task in self.by_name.values())
        self._undecided = deciding(plan)

    def turn(self, task: TaskRecord, state: str, process: bool) -> None:
        """Set the state of a task.

        ``process`` is True where a process of the task may exist.
        """
        self._states[task.state] -= 1
        self._states[state] += 1
        self.processes[task.plan.role] += process - task.process
        task.state, task.process = state, process
        if state == "succeeded":
            self._undecided.discard(task.plan.name)

    def begin_attempt(self, task: TaskRecord) -> None:
        """Record that a task is ordered to start, and forget its process before."""
        self.turn(task, "starting", process=True)
        task.restart_at, task.recalled, task.progress, task.usage = None, False, {}, {}
        task.pid = task.exit_code = task.cause = task.frozen = task.doing = None

    def number(self, *states: str) -> int:
        """Return the number of tasks in any of these states."""
        return sum(self._states[state] for state in states)

    @property
    def process_count(self) -> int:
        """Return the number of the run's processes that may exist."""
        return sum(self.processes.values())

    @property
    def have_succeeded(self) -> bool:
        """Return whether every task that decides about the run has succeeded."""
        return not self._undecided

    @property
    def chief(self) -> Optional[TaskRecord]:
        """Return the task that saves; None where no task does."""
        return next((task for task in self.by_name.values() if task.plan.chief), None)

    def running(self) -> List[TaskRecord]:
        """Return the tasks of which a process may exist."""
        return [task for task in self.by_name.values() if task.process]

    def waiting(self) -> List[TaskRecord]:
        """Return the tasks that have no process, and are to have one."""
        return [task for task in self.by_name.values() if task.state in ALIVE and not task.process]
