"""Rule: restart all workers together, for programs whose workers connect only at the start (``restart.together``).

When any worker restarts, for any reason, the others are ordered to end. Their next attempts all begin at one moment,
once no process of the former attempts is left. A worker that has succeeded trains again with the others.
"""

import math
from typing import List

from cluster.protocol.failure_kinds import LOST_CONNECTION
from cluster.task import TRAINERS
from launch.agent.protocol.messages import Event, Exited, Joined, Order, RestartRequested
from launch.agent.supervision.elastic import Formations
from launch.agent.supervision.restart_policy import Restarts, may_mend
from launch.agent.supervision.run_state import SupervisedRun, SupervisionRule
from launch.agent.supervision.task_records import TaskRecord


class Together(SupervisionRule):
    """The rule that restarts all workers of one run together."""

    def __init__(self, run: SupervisedRun, formations: Formations, restarts: Restarts):
        super().__init__(run)
        self._formations, self._restarts = formations, restarts
        self._at = -math.inf  # when the next attempts begin, at the earliest

    def handle(self, event: Event, now: float) -> List[Order]:
        """Return the orders that end all workers when one restarts; delay the next attempts until all have ended."""
        may_restart = isinstance(event, (Exited, Joined, RestartRequested))  # no other event lets a task wait
        if not may_restart or not self._run.plan.restart_together or not self._run.trains:
            return []
        if isinstance(event, Exited):
            self._explain(event, now)
            if not self._run.trains:
                return []
        workers = self._workers()
        waiting = [task for task in workers if task.state == "restarting"]
        if not waiting and not any(task.recalled for task in workers):
            return []
        self._hold(waiting)
        if isinstance(event, RestartRequested) and any(task.plan.name in event.tasks for task in waiting):
            self._at = now  # an operator's restart ends the pause of all
        if not any(task.process for task in workers):
            return self._start(workers)
        orders = self._restarts.recall([task.plan.name for task in workers if task.process], now)
        if orders and not isinstance(event, RestartRequested):
            self._run.incidents.record_action(f"all {len(workers)} workers restart together", now)
        return orders

    def _explain(self, event: Exited, now: float) -> None:
        """Record the end of a worker that was ordered to end, where its own error explains a lost connection.

        The end of the worker that failed first may be reported last. If no further attempt can mend it, the run fails.
        """
        task, incidents = self._run.tasks[event.task], self._run.incidents
        was_ordered = task.recalled and task.state == "restarting" and task.attempt == event.attempt
        if was_ordered and event.error and event.kind != LOST_CONNECTION and incidents.awaits_cause(now):
            incident = incidents.record_exit(event, now)
            if not may_mend(event):
                self._run.roster.turn(task, "failed", process=False)
                task.cause = event.cause
                self._run.close("failed", incidents.blame_task(event, incident, self._run.plan.restart_max + 1), now)

    def _workers(self) -> List[TaskRecord]:
        """Return the workers of the formation, with the chief."""
        tasks = (self._run.tasks[name] for name in self._formations.current.indices)
        return [task for task in tasks if task.plan.role in TRAINERS]

    def _hold(self, waiting: List[TaskRecord]) -> None:
        """Let no waiting worker start by itself; remember the latest of their times."""
        for task in waiting:
            self._at = self._at if task.restart_at is None else max(self._at, task.restart_at)
            task.restart_at = None

    def _start(self, workers: List[TaskRecord]) -> List[Order]:
        """Let all workers start at one moment; ``Restarts`` orders the starts."""
        at, self._at = self._at, -math.inf
        for task in workers:
            self._restarts.put(task, at)
        return []
