"""The chief's work between two steps and at the end of a run: it saves, measures and compares.

With ``train.best`` the chief measures the variables of each whole checkpoint, after it has saved them. In synchronous
training the other workers wait meanwhile. The chief writes a whole checkpoint every ``checkpoint.every_s`` seconds, but
deltas, which serve restarts, much more often.
"""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

from cluster.checkpoints import best
from cluster.checkpoints.saver import Checkpoints
from cluster.errors import TrainingError
from cluster.model.evaluation import Evaluation
from cluster.protocol.checkpoint_files import BEST
from cluster.protocol.outcome import Outcome
from cluster.protocol.save_request import HOLD, HOLD_S, LIVE, SaveRequests
from cluster.runtime.tf_errors import reason_of
from cluster.steps.base_worker import BaseWorker
from cluster.steps.replica import Replica
from cluster.task import Train
from cluster.training.callbacks import Callback
from cluster.training.reporting import Activity, TrainingProgress
from cluster.training.run_steps import NOTICE, LastStep
from cluster.verify.verification import Verification


class ChiefSaving(Callback):
    """The callback that saves a checkpoint when one is due, when a person or an agent requests one, and at the end."""

    def __init__(
        self,
        requests: SaveRequests,
        checkpoints: Checkpoints,
        stepper: BaseWorker,
        progress: TrainingProgress,
        activity: Activity,
    ):
        self._requests, self._checkpoints, self._stepper = requests, checkpoints, stepper
        self._progress, self._activity = progress, activity

    def pause(self, session: Any, step: int) -> None:
        """Save a checkpoint if one is due or requested, and report a new checkpoint at once."""
        requests, checkpoints, before = self._requests, self._checkpoints, self._checkpoints.step
        with self._activity.pause("saving", step):
            if not requests.take():
                checkpoints.save_if_due(session, step)
            elif requests.manner == HOLD:
                self._save_and_hold(session, step)
            else:
                self._progress.report_now(step)
                save = checkpoints.save_live if requests.manner == LIVE else checkpoints.save_quickly
                save(session, step)
            if requests.is_open and not checkpoints.is_saving:
                self._answer(step)
            elif checkpoints.step != before:  # it is known whatever becomes of a measurement that follows
                self._progress.report_now(step)

    def _save_and_hold(self, session: Any, step: int) -> None:
        """Save the last step of all workers, and take no further one, as long as this process may be about to end."""
        self._progress.report_now(step)
        with self._stepper.held(session, step) as step:
            self._checkpoints.save_quickly(session, step)
            self._answer(step)
            if self._checkpoints.step == step:
                time.sleep(HOLD_S)  # this process ends meanwhile, and all others with it

    def _answer(self, step: int) -> None:
        self._requests.answer()
        self._progress.report_now(step)

    def fields(self) -> Dict[str, Any]:
        """Return the fields of ``Progress`` on the newest checkpoint, and on the newest request for one."""
        return {**self._checkpoints.progress_fields(), **self._requests.progress_fields()}

    def end(self, session: Any, outcome: Outcome) -> Outcome:
        """Save the last step, and report the checkpoint at once, so that a failed evaluation does not hide it."""
        step = int(outcome.step or 0)
        self._checkpoints.save_last(session, step)
        self._progress.report_now(step)
        return replace(outcome, checkpoint=self._checkpoints.path, checkpoint_step=self._checkpoints.step)


class Evaluating(Callback):
    """The callback that evaluates the last step on held-out examples: on all, or on the first ``batches`` batches."""

    def __init__(self, evaluation: Evaluation, stepper: BaseWorker, batches: Optional[int]):
        self._evaluation, self._stepper, self._batches = evaluation, stepper, batches

    def end(self, session: Any, outcome: Outcome) -> Outcome:
        """Return the outcome with the metrics of the newest variables."""
        self._stepper.refresh(session)
        return replace(outcome, metrics=self._evaluation.run(session, self._batches))


class BestCheckpoint(Callback):
    """The callback that keeps the best checkpoint by ``train.best``, and ends training when new ones are no better.

    Raises:
      TrainingError: the run saves no checkpoints.
    """

    def __init__(self, settings: Train, checkpoints: Checkpoints, last: LastStep, replica: Replica, activity: Activity):
        self._settings, self._batches, self._steps = settings.best, settings.evaluate_batches, settings.last_step
        self._checkpoints, self._last, self._replica, self._activity = checkpoints, last, replica, activity
        self._record = best.begin(settings.best, None)
        self._problem: Optional[str] = None
        self._whole_saves = checkpoints.whole_saves
        if checkpoints.folder is None:
            raise TrainingError("train.best needs a run that saves checkpoints; set train.checkpoint.dir")
        self._folder = Path(checkpoints.folder)
        self._load()

    def _load(self) -> None:
        try:
            found = best.read(self._folder)
        except (OSError, ValueError) as error:
            print(
                f"{self._folder / BEST} cannot be read, and the patience begins again: {reason_of(error)}", flush=True
            )
            return
        if found is None or found.step is None:
            return
        if self._checkpoints.path_of(found.step) is None:
            print(f"the best checkpoint, of step {found.step}, is gone; train.best.patience begins again", flush=True)
            return
        self._record = best.begin(self._settings, found)
        self._checkpoints.spared = self._record.step
        if self._record.last is not None:
            self._last.step = min(self._last.step, self._record.last)

    def pause(self, session: Any, step: int) -> None:
        """Measure the checkpoint of ``step`` if it is new and not a delta, and ``step`` is not the last step.

        If ``train.best.patience`` is then used up, training ends.
        """
        is_new = self._checkpoints.whole_saves != self._whole_saves
        self._whole_saves = self._checkpoints.whole_saves
        if is_new and step < self._last.step:
            with self._activity.pause("evaluating", step):
                self._measure(session, step)

    def _measure(self, session: Any, step: int) -> None:
        self._replica.stepper.renew(session)
        evaluation = self._replica.model.evaluation
        self._note(step, evaluation.run(session, self._batches) if evaluation else {})
        is_decided = best.is_patient(self._settings, self._record) or self._record.last is not None
        if not is_decided and self._write_last(step):
            self._last.bring_forward(session, step)

    def end(self, session: Any, outcome: Outcome) -> Outcome:
        """Return ``outcome`` with the best checkpoint. Its metrics count as the measurement of the last checkpoint."""
        self._note(int(outcome.step or 0), outcome.metrics)
        best_path = self._checkpoints.path_of(self._record.step)
        early = self._record.why if int(outcome.step or 0) < self._steps else None
        return replace(outcome, best=self._measurement, best_checkpoint=best_path, ended_early=early)

    def _note(self, step: int, metrics: Mapping[str, float]) -> None:
        if self._checkpoints.step != step:
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
        try:
            best.write(self._folder, record)
        except OSError as error:
            problem = f"{self._folder / BEST} cannot be written: {reason_of(error)}"
            if problem != self._problem:
                print(problem, flush=True)
            self._problem = problem
            return False
        self._problem = None
        return True

    def fields(self) -> Dict[str, Any]:
        """Return the field of ``Progress`` on the best checkpoint so far."""
        return {"best": self._measurement}

    @property
    def _measurement(self) -> Dict[str, float]:
        """Return step and value of the best checkpoint, as {"step", metric}; {} before the first."""
        record = self._record
        if record.step is None or record.value is None:
            return {}
        return {"step": record.step, record.metric: record.value}


class Verifying(Callback):
    """The callback that compares each step with training in one process, for ``launch verify``."""

    def __init__(self, verification: Verification, activity: Activity):
        self._verification, self._activity = verification, activity

    def begin(self, session: Any) -> None:
        """Build the training in one process, and start it with the servers' first values."""
        self._activity.note("builds the training in one process to compare with")
        self._verification.begin(session)

    def pause(self, session: Any, step: int) -> None:
        """Compare the variables after ``step``, the newest step."""
        with self._activity.pause("comparing", step):
            self._verification.step(session, step)

    def end(self, session: Any, outcome: Outcome) -> Outcome:
        """Return ``outcome`` with the numbers of compared steps and variables as its metrics."""
        return replace(outcome, metrics=self._verification.result())
