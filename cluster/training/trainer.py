"""Train as one worker: setup, describe, loop, and the end of the run.

A worker loses its session when a parameter server restarts. The worker then makes a new one on the same graph, and
joins again (``cluster.training.joining``).
"""

import contextlib
import time
from typing import Any, Dict, List, Mapping, Optional, Set, Tuple

from cluster.checkpoints.saver import Checkpoints
from cluster.errors import TrainingError
from cluster.job import Job
from cluster.model import device_pool
from cluster.protocol.outcome import Outcome, Reporter
from cluster.protocol.save_request import HOLD, HOLD_S, LIVE, SaveRequests
from cluster.protocol.standby import Standby
from cluster.runtime import server
from cluster.runtime.devices import worker_device
from cluster.runtime.server import Shutdown
from cluster.runtime.tf_compat import tf
from cluster.runtime.tf_errors import reason_of
from cluster.runtime.waiting import TIMEOUT_S
from cluster.task import Task, Train
from cluster.trace.recording import Tracing
from cluster.training.best_checkpoint import BestCheckpoint
from cluster.training.graph_builder import Builder
from cluster.training.job_warnings import FirstBatches, ReadArgs, UnreadArgs
from cluster.training.joining import FirstValues, Joining
from cluster.training.reporting import TrainingProgress, description, exchanges
from cluster.training.run_steps import LastStep, StepTimes
from cluster.training.step_errors import explain_building, explain_errors
from cluster.training.summaries import Summaries
from cluster.training.training_metrics import TrainingMetrics
from cluster.variables.partition_count import NeedsCluster, PartitionCount, PartitionCountChanged
from cluster.verify.verification import Verification

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0


def train(
    job: Job,
    task: Task,
    settings: Train,
    args: Mapping[str, Any],
    reporter: Reporter,
    checkpoint_dir: Optional[str],
    standby: Optional[Standby] = None,
) -> Outcome:
    """Train as one worker of the cluster until the global step is ``settings.steps``.

    Args:
      reporter: gets the progress, and the outcome whatever it is.
      checkpoint_dir: a folder on the chief's host; None for no checkpoints.
      standby: the wait for this process's turn, before which it reports nothing.

    Returns:
      The outcome that was reported; a failure's has the cause and the traceback.
    """
    trainer = Trainer(job, task, settings, args, reporter, checkpoint_dir)
    if standby is not None and standby.waits:
        trainer.prepare()
        standby.wait()
    try:
        trainer.setup()
        trainer.describe()
        return trainer.loop()
    except Exception as error:
        return reporter.failure(error, trainer.step)


class Trainer:
    """One worker's way through a run. Attributes are valid after ``setup``.

    ``step`` is the last global step that this worker knows of, None before it has joined.
    """

    def __init__(
        self,
        job: Job,
        task: Task,
        settings: Train,
        args: Mapping[str, Any],
        reporter: Reporter,
        checkpoint_dir: Optional[str],
    ):
        args = ReadArgs(args)
        self.job, self.task, self.settings, self.args = job.with_args(args), task, settings, args
        self._unread = UnreadArgs(args, job)
        self.step: Optional[int] = None
        self._folder = None if settings.verify else checkpoint_dir
        self._reporter = reporter
        self._requests = SaveRequests(reporter.folder)
        self._heartbeat, self._recorder = reporter.heartbeat, reporter.recorder
        self._pause_s = _FIRST_PAUSE_S
        self._is_built = False
        self._saving_s = 0.0

    def prepare(self) -> None:
        """Build the graph before ``setup``, unless only the cluster can answer what it depends on."""
        if self.settings.replication != device_pool.IN_GRAPH:
            with contextlib.suppress(NeedsCluster):
                self._gather_and_build(None)

    def setup(self) -> None:
        """Start this task's server, then build the whole graph."""
        self._heartbeat.note("opens its port")
        self._server = server.start(
            self.task, device_pool.count_devices(self.settings), server.threads_of(self.settings)
        )
        if not self._is_built:
            self._gather_and_build(self._server)
        self._partition_count.serving = self._server
        self._progress = TrainingProgress(self._reporter, self.settings.steps)

    def _gather_and_build(self, serving: Any) -> None:
        self._heartbeat.note("looks for the devices of its towers")
        self._pool = device_pool.gather_pool(self.task, self.settings, serving)
        self.task = device_pool.as_client(self.task, self._pool)
        self._partition_count = PartitionCount(self.task, self.settings, serving)
        self._build()
        self._is_built = True

    def _build(self) -> None:
        """Build the graph, which does not change afterwards.

        Raises:
          JobError: it cannot be built, by this attempt or another one.
        """
        self._heartbeat.note("builds its graph")
        with explain_building(self.job):
            self._build_graph()

    def _build_graph(self) -> None:
        self._waited_before_s = 0.0
        self.replica = Builder(
            self.job, self.task, self.settings, self.args, self._pool, self._partition_count.choose
        ).build()
        host = worker_device(self.task.role, self.task.index)
        with self.replica.graph.as_default(), tf.device(host):
            self._partition_count.keep()
            self._shutdown = Shutdown(self.task, device_pool.lent_tasks(self._pool))
            if self.task.is_chief:
                rows = self.replica.tables.saved if self.replica.tables else None
                saved = (self.settings.checkpoint, self.replica.variables, host, self._folder)
                still, live = self.replica.stepper.paused, not self.settings.best.metric  # which measures what it saves
                self._checkpoints = Checkpoints(*saved, rows=rows, still=still, while_training=live)
            self._step_times = StepTimes(self.task)
            self._last = LastStep(self.settings)
            self._metrics = TrainingMetrics(self.task, self.replica.measured, self._last)
            checkpoints = self._checkpoints if self.task.is_chief else None
            self._best = self._make_best() if self.task.is_chief else None
            reports = (self._step_times, self._metrics)
            first = FirstValues(self.task, self.replica, host, self.settings.warm_start)
            self._joining = Joining(
                task=self.task,
                replica=self.replica,
                partition_count=self._partition_count,
                reports=reports,
                last=self._last,
                checkpoints=checkpoints,
                first=first,
            )
            self._summaries = self._make_summaries()
            self._verification = self._make_verification()
            is_first = self.step is None and not self._reporter.attempt
            self._first_batches = FirstBatches(self.job, self._pool, self.replica.batches, is_first)
        self._recorder.describe(exchanges(self.replica))
        self._tracing = Tracing(self.task.name, self.settings, self._reporter.beside("trace"))
        self.replica.graph.finalize()

    def _make_best(self) -> BestCheckpoint:
        return BestCheckpoint(self.settings, self._checkpoints, self._last, self.replica, self._heartbeat)

    def _make_summaries(self) -> Summaries:
        if not self.task.is_chief:
            return Summaries(None, {}, self.settings.last_step, 0)
        scalars = {**self.replica.stepper.scalars(), **self._step_times.scalars()}
        global_batch_size = self.task.batch_size * self.task.num_workers
        return Summaries(self._reporter.beside("summaries"), scalars, self.settings.last_step, global_batch_size)

    def _make_verification(self) -> Optional[Verification]:
        if not (self.settings.verify and self.task.is_chief):
            return None
        return Verification(self.job, self.task, self._pool[0].devices, self.settings, self.args, self.replica)

    def describe(self) -> None:
        """Print in one line what this worker is about to do."""
        described = description(self._pool, self.settings, self.replica.placement, self._partition_count.number)
        print(f"{self.task.name}: {described}", flush=True)

    def loop(self) -> Outcome:
        """Train to the end, with a new session whenever a parameter server has started again."""
        while True:
            session = self._connect()
            try:
                return self._train_in(session)
            except PartitionCountChanged:
                print(f"{self.task.name}: building the graph again, because the chief chose other slices", flush=True)
                session.close()
                self._build()
            except server.LOST as error:
                self._refuse_recovery(error)
                self._recover(session, error)

    def _connect(self) -> Any:
        self._heartbeat.restart()
        self._heartbeat.note("waits for the parameter servers")
        server.wait_for_ps(self.task)
        device_pool.wait_for_lent_tasks(self._pool)
        return server.connect(self.task, self._server, self.replica.graph, device_pool.lent_tasks(self._pool))

    def _refuse_recovery(self, error: Exception) -> None:
        """Refuse to recover a run that is verified.

        ``launch verify`` compares such a run from its first step to its last.

        Raises:
          TrainingError: the run is verified.
        """
        if self.settings.verify:
            raise TrainingError(
                f"{self.task.name}: lost a server after step {self.step}, and launch verify cannot continue from a"
                f" checkpoint; find why the server ended, then start again ({reason_of(error)})"
            ) from error

    def _recover(self, session: Any, error: Exception) -> None:
        if self._pause_s * 2 > TIMEOUT_S:
            raise error
        print(f"{self.task.name}: joining again: {type(error).__name__}: {reason_of(error)}", flush=True)
        if self.step is not None:
            self._progress.report_now(self.step, {})  # so that it is known how far training goes back
        self._recorder.end(self.step or 0, is_whole=False)
        self._recorder.begin("starting")
        time.sleep(min(self._pause_s, _LONGEST_PAUSE_S))
        self._pause_s *= 2
        self.replica.stepper.stop_reading()
        if self.task.is_chief:
            self._checkpoints.ask_to_end()
        session.close()
        if self.task.is_chief:
            self._checkpoints.give_up()

    def _train_in(self, session: Any) -> Outcome:
        self._heartbeat.note("begins to read its data")
        session.run(self.replica.prepare)
        session.run(self.replica.start_input)
        if self.replica.evaluation is not None:
            self.replica.evaluation.refuse_endless(session, self.settings.evaluate_batches)
        self.step = self._joining.join(session, self._heartbeat)
        self._recorder.end(self.step)
        self.replica.stepper.begin_reading(session)
        if self._verification is not None:
            self._heartbeat.note("builds the one process to compare with")
            self._verification.begin(session)
        self._progress.begin(self.step)
        if self.task.is_chief and self._checkpoints.has_passed_over:
            self._progress.report_now(self.step, self._saved())  # at once: the next process would find no trace of them
        self._tracing.begin(self.step)
        self._heartbeat.ask = lambda: self.replica.stepper.owes(session)
        self._placed: Set[Tuple[str, ...]] = set()
        while self.step < self._last.step and not self.replica.stepper.has_ended:
            with self._tracing.watch(session, self.step, self.replica) as watched:
                self.step, loss, fetched = self._take_step(watched)
                self._record_step()
            self._metrics.note(session, self.step, fetched["metrics"])
            self._last.note(fetched["last step"])
            examples = int((fetched["examples"] or [self.task.batch_size])[0])
            self._first_batches.note(session, fetched["first batches"])
            if examples:
                self._summaries.note(self.step, loss, fetched["summaries"], self._metrics.latest)
            self._after_step(session, loss, examples)
        return self._finish(session)

    def _take_step(self, session: Any) -> Tuple[int, float, Dict[str, List[Any]]]:
        more = {
            "metrics": self._metrics.fetches,
            "last step": self._last.fetches,
            "examples": [] if self.replica.examples is None else [self.replica.examples],
            "first batches": self._first_batches.fetches,
            "summaries": self._summaries.wanted(int(self.step or 0)),
        }
        self._begin_step(tuple(name for name, fetches in more.items() if fetches))
        with explain_errors(self.job, self.task, self.step, self.replica.graph):
            return self.replica.stepper.step(session, more)

    def _begin_step(self, fetches: Tuple[str, ...]) -> None:
        """Report a first step to the pulse if these fetches are new.

        TensorFlow places the graph again for other fetches than before: such a step takes as long as a first one.
        """
        is_first = fetches not in self._placed
        self._recorder.begin("first step" if is_first else "step")
        if is_first:
            self._placed.add(fetches)
            self._heartbeat.begin_phase("first step")

    def _record_step(self) -> None:
        stepper = self.replica.stepper
        self._waited_s = (stepper.waited_s or 0.0) - self._waited_before_s
        self._waited_before_s += self._waited_s
        waited_s = None if stepper.waited_s is None else self._waited_s
        self._recorder.end(int(self.step or 0), waited_s, stepper.longest_wait)

    def _after_step(self, session: Any, loss: float, examples: int) -> None:
        self._pause_s = _FIRST_PAUSE_S
        if self.task.is_chief:
            self._pause_as_chief(session, int(self.step or 0))
            self._heartbeat.begin_phase("step")
        else:
            self._heartbeat.begin_phase("step", self._waited_s)
        stepper = self.replica.stepper
        step_time_ms = self._progress.note(
            int(self.step or 0), loss, examples, self._saved(), stepper.dropped, stepper.waited_s
        )
        if step_time_ms is not None:
            self._step_times.report(session, step_time_ms)
            self._first_batches.compare(session)

    def _pause_as_chief(self, session: Any, step: int) -> None:
        """Save, measure and compare after a step, whichever is due."""
        began = time.monotonic()
        self._heartbeat.begin_phase("saving", self._waited_s)
        self._recorder.begin("saving")
        self._save(session, step)
        self._recorder.end_pause(step)
        if self._best is not None:
            self._recorder.begin("evaluating")
            self._best.measure_if_due(session, step)
            self._recorder.end_pause(step)
        if self._verification is not None:
            self._heartbeat.begin_phase("comparing")
            self._recorder.begin("comparing")
            self._verification.step(session, step)
            self._recorder.end_pause(step)
        self._saving_s += time.monotonic() - began

    def _save(self, session: Any, step: int) -> None:
        requests, checkpoints, before = self._requests, self._checkpoints, self._checkpoints.step
        if not requests.take():
            checkpoints.save_if_due(session, step)
        elif requests.manner == HOLD:
            self._save_and_hold(session, step)
        else:
            self._progress.report_now(step, self._saved())
            save = checkpoints.save_live if requests.manner == LIVE else checkpoints.save_quickly
            save(session, step)
        if requests.is_open and not checkpoints.is_saving:
            self._answer(step)
        elif checkpoints.step != before:  # it is known whatever becomes of a measurement that follows
            self._progress.report_now(step, self._saved())

    def _save_and_hold(self, session: Any, step: int) -> None:
        """Save the last step of all workers, and take no further one, as long as this process may be about to end."""
        self._progress.report_now(step, self._saved())
        with self.replica.stepper.held(session, step) as step:
            self._checkpoints.save_quickly(session, step)
            self._answer(step)
            if self._checkpoints.step == step:
                time.sleep(HOLD_S)  # this process ends meanwhile, and all others with it

    def _answer(self, step: int) -> None:
        self._requests.answer()
        self._progress.report_now(step, self._saved())

    def _saved(self) -> Dict[str, Any]:
        if not self.task.is_chief:
            return {}
        reports = {**self._checkpoints.progress_fields(), **self._requests.progress_fields()}
        best = self._best.measurement if self._best else {}
        warnings = [*self._first_batches.warnings(), *self._unread.warnings()]
        found = {"metrics": self._metrics.latest, "best": best, "warnings": warnings}
        return {**reports, "saving_s": self._saving_s, **found}

    def _evaluate(self, session: Any) -> Dict[str, float]:
        if self._verification is not None:
            return self._verification.result()
        if self.replica.evaluation is None:
            return {}
        self.replica.stepper.refresh(session)
        return self.replica.evaluation.run(session, self.settings.evaluate_batches)

    def _finish(self, session: Any) -> Outcome:
        self._heartbeat.begin_phase("ending")
        self._recorder.begin("ending")
        self._progress.refuse_nothing_trained(self.task.name)
        if not self.task.is_chief:
            self._shutdown.leave(session)
            self._recorder.end(int(self.step or 0))
            return self._progress.end(Outcome(True, self.step))
        for index in self._shutdown.wait_for_others(session):
            print(f"worker with index {index} has not left; ending without it", flush=True)
        self.step = int(session.run(self.replica.global_step))
        self._first_batches.compare(session)
        print(self.replica.stepper.account(session), flush=True)
        self._checkpoints.save_last(session, self.step)
        self._progress.report_now(self.step, self._saved())  # so that it is known whatever becomes of the evaluation
        metrics = self._evaluate(session)
        self._recorder.end(self.step)
        saved = self._checkpoints
        outcome = Outcome(True, self.step, checkpoint=saved.path, checkpoint_step=saved.step, metrics=metrics)
        if self._best is not None:
            outcome = self._best.conclude(outcome)
        self._progress.report_now(self.step, self._saved())  # no step that ends training early is reported otherwise
        self._progress.end(outcome)
        self._shutdown.end_servers(session)
        return outcome
