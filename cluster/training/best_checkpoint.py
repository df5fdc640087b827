"""The chief's part of ``train.best``: measure checkpoints, keep the best, and end training when it gets no better.

The chief measures when it has saved, with the variables of the checkpoint. In synchronous training the others wait. It
measures whole checkpoints only, as often as ``checkpoint.every_s``: deltas come much more often, for restarts.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

from cluster.checkpoints import best
from cluster.checkpoints.saver import Checkpoints
from cluster.errors import TrainingError
from cluster.protocol.checkpoint_files import BEST
from cluster.protocol.heartbeat import Heartbeat
from cluster.protocol.outcome import Outcome
from cluster.runtime.tf_errors import reason_of
from cluster.steps.replica import Replica
from cluster.task import Train
from cluster.training.run_steps import NOTICE, LastStep


class BestCheckpoint:
    """Measure the checkpoints of one run; without ``train.best`` it does nothing.

    Raises:
      TrainingError: the run saves no checkpoints.
    """

    def __init__(
        self,
        settings: Train,
        checkpoints: Checkpoints,
        last: LastStep,
        replica: Replica,
        heartbeat: Heartbeat,
    ):
        self._settings, self._batches, self._steps = settings.best, settings.evaluate_batches, settings.last_step
        self._checkpoints, self._last, self._replica, self._heartbeat = checkpoints, last, replica, heartbeat
        self._record = best.begin(settings.best, None)
        self._problem: Optional[str] = None
        self._whole_saves = checkpoints.whole_saves
        if self._settings.metric and checkpoints.folder is None:
            raise TrainingError("train.best: expected a run that saves checkpoints, found none; set checkpoint.dir")
        if self._settings.metric:
            self._load(Path(str(checkpoints.folder)))

    def _load(self, folder: Path) -> None:
        try:
            found = best.read(folder)
        except (OSError, ValueError) as error:
            print(f"{folder / BEST} cannot be read, and the patience begins again: {reason_of(error)}", flush=True)
            return
        if found is None or found.step is None:
            return
        if self._checkpoints.path_of(found.step) is None:
            print(f"the best checkpoint, of step {found.step}, is gone; the patience begins again", flush=True)
            return
        self._record = best.begin(self._settings, found)
        self._checkpoints.spared = self._record.step
        if self._record.last is not None:
            self._last.step = min(self._last.step, self._record.last)

    def measure_if_due(self, session: Any, step: int) -> None:
        """Measure the checkpoint of ``step`` if it is new, whole and not the last; end training if patience is over."""
        is_new = self._checkpoints.whole_saves != self._whole_saves
        self._whole_saves = self._checkpoints.whole_saves
        if not self._settings.metric or not is_new or step >= self._last.step:
            return
        self._heartbeat.begin_phase("evaluating")
        self._replica.stepper.renew(session)
        evaluation = self._replica.evaluation
        self._note(step, evaluation.run(session, self._batches) if evaluation else {})
        is_decided = best.is_patient(self._settings, self._record) or self._record.last is not None
        if not is_decided and self._write_last(step):
            self._last.bring_forward(session, step)

    def conclude(self, outcome: Outcome) -> Outcome:
        """Return the chief's outcome, whose metrics are those of the last checkpoint, with the best one."""
        self._note(int(outcome.step or 0), outcome.metrics)
        best_path = self._checkpoints.path_of(self._record.step)
        early = self._record.why if int(outcome.step or 0) < self._steps else None
        return replace(outcome, best=self.measurement, best_checkpoint=best_path, ended_early=early)

    def _note(self, step: int, metrics: Mapping[str, float]) -> None:
        if not self._settings.metric or self._checkpoints.step != step:
            return
        self._record = best.measured(self._record, step, metrics.get(self._record.metric))
        self._checkpoints.spared = self._record.step
        self._write(self._record)

    def _write_last(self, step: int) -> bool:
        """Record the decision to end before any worker knows of it; False where that is not possible now."""
        decided = replace(self._record, last=step + NOTICE, why=best.reason(self._record))
        if not self._write(decided):
            return False
        self._record = decided
        print(f"ending early: {decided.why}", flush=True)
        return True

    def _write(self, record: best.BestSoFar) -> bool:
        """Write the record, and return whether that succeeded; print only the first of consecutive failures."""
        folder = Path(str(self._checkpoints.folder))
        try:
            best.write(folder, record)
        except OSError as error:
            problem = f"{folder / BEST} cannot be written: {reason_of(error)}"
            if problem != self._problem:
                print(problem, flush=True)
            self._problem = problem
            return False
        self._problem = None
        return True

    @property
    def measurement(self) -> Dict[str, float]:
        """Return step and value of the best checkpoint, as {"step", metric}; {} before the first."""
        record = self._record
        if record.step is None or record.value is None:
            return {}
        return {"step": record.step, record.metric: record.value}
