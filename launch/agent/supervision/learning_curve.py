"""The rule that records the reports of training in the run's learning curve."""

from typing import List, Optional, Sequence

from cluster.protocol.loss_points import LossPoint, count, new_points
from cluster.task import TRAINERS
from launch.agent.protocol.messages import Advanced, Event, Exited, Order
from launch.agent.supervision.elastic import Formations
from launch.agent.supervision.run_state import SupervisedRun, SupervisionRule
from launch.agent.supervision.task_records import TaskRecord


class LearningCurve(SupervisionRule):
    """The rule that records the losses, metrics, checkpoints and formations of a run in its learning curve."""

    def __init__(self, run: SupervisedRun, formations: Formations):
        super().__init__(run)
        self._formations = formations
        self._attempt, self._taken = -1, 0  # of the chief; the number of its points so far
        self._reporter: Optional[str] = None  # of a program
        self._saved: Optional[int] = None
        self._formation = 0

    def handle(self, event: Event, now: float) -> List[Order]:
        """Record the progress or the end of a task in the curve; return no orders."""
        if isinstance(event, Advanced):
            task = self._run.roster.find(event)
            if task is not None and task.progress.get("step") is not None:
                self._record(task, now)
        elif isinstance(event, Exited):
            outcome = self._run.outcome
            if outcome.get("metrics") and outcome.get("step") is not None:
                self._run.curve.evaluate(outcome["step"], outcome["metrics"])
            self._run.curve.complete()
        return []

    def _record(self, task: TaskRecord, now: float) -> None:
        curve, progress = self._run.curve, task.progress
        if task.plan.role == "evaluator" and progress.get("metrics"):
            curve.evaluate(progress["step"], progress["metrics"])
        for point in self._new_points(task):
            curve.add(point, task.rates(now)[0])
        if task.plan.chief:
            self._mark(progress["step"])

    def _new_points(self, task: TaskRecord) -> Sequence[LossPoint]:
        """Return the points that are new in a report of the chief, or of the worker that stands for a program."""
        progress = task.progress
        if self._run.plan.judge == "outcome":
            if not task.plan.chief:
                return []
            taken = self._taken if task.attempt == self._attempt else 0
            self._attempt, self._taken = task.attempt, count(progress)
            return new_points(progress, taken)
        if task.plan.chief or (task.plan.role in TRAINERS and self._reporter is None):
            self._reporter = task.plan.name
        loss = progress.get("loss")
        if loss is None or task.plan.name != self._reporter:
            return []
        return [LossPoint(progress["step"], loss, 1)]

    def _mark(self, step: int) -> None:
        """Record a checkpoint or a formation that is new, with the chief's step."""
        saved, formation = self._run.checkpoint_step, self._formations.current.number
        if saved is not None and saved != self._saved:
            self._run.curve.mark("checkpoint", saved)
        if formation != self._formation:
            self._run.curve.mark("formation", step)
        self._saved, self._formation = saved, formation
