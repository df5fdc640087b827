"""Train as one worker: a loop over steps, between which callbacks act, and the end of the run.

A worker loses its session when a parameter server restarts. The worker then makes a new one on the same graph, and
joins again (``cluster.training.joining``). ``cluster.training.callbacks`` defines callbacks.
"""

import time
from typing import Any, Dict, List, Mapping, Optional, Tuple

from cluster.errors import TrainingError
from cluster.job import Job
from cluster.model import device_pool
from cluster.protocol.loss_points import LossPoints
from cluster.protocol.outcome import Outcome, Reporter
from cluster.protocol.save_request import SaveRequests
from cluster.protocol.standby import Standby
from cluster.runtime import server
from cluster.runtime.tf_errors import reason_of
from cluster.runtime.waiting import TIMEOUT_S
from cluster.task import Task, Train
from cluster.training.callbacks import Step
from cluster.training.job_warnings import ReadArgs
from cluster.training.reporting import Activity, TrainingProgress, description
from cluster.training.step_errors import explain_building, explain_errors
from cluster.training.worker_graph import Worker, WorkerGraph
from cluster.variables.partition_count import PartitionCount, PartitionCountChanged

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
      job: the job without its args.
      args: the args of the job.
      reporter: reports the progress, and the outcome of success or failure.
      checkpoint_dir: a folder on the chief's host; None for no checkpoints.
      standby: the wait for this process's turn, before which the process reports nothing; None if it may train now.

    Returns:
      The reported outcome; the outcome of a failure has the cause and the traceback.

    Raises:
      Exception: the graph cannot be built, and the turn of this process has not come.
    """
    trainer = Trainer(job, task, settings, args, reporter, checkpoint_dir, standby=standby)
    try:
        trainer.setup()
        trainer.describe()
        return trainer.loop()
    except Exception as error:
        if trainer.standby.waits:
            raise
        return reporter.failure(error, trainer.step)


class Trainer:
    """The training of one worker, from setup to outcome. Attributes are valid after ``setup``.

    ``step`` is the newest global step that this worker knows; None before the worker has joined.
    """

    def __init__(
        self,
        job: Job,
        task: Task,
        settings: Train,
        args: Mapping[str, Any],
        reporter: Reporter,
        checkpoint_dir: Optional[str],
        standby: Optional[Standby] = None,
    ):
        self.args = ReadArgs(args)
        self.job, self.task, self.settings = job.with_args(self.args), task, settings
        self.step: Optional[int] = None
        self._folder = None if settings.verify else checkpoint_dir
        self._reporter = reporter
        self._requests = SaveRequests(reporter.folder)
        self._activity = Activity(reporter)
        self._progress = TrainingProgress(
            reporter, settings.steps, self._fields, LossPoints() if task.is_chief else None
        )
        self._pause_s = _FIRST_PAUSE_S
        self._saving_s = 0.0
        self.standby = standby or Standby()
        self._server: Any = None
        self._size = device_pool.count_devices(settings), server.threads_of(settings)  # of the server

    def setup(self) -> None:
        """Build the graph, and start this task's server.

        A process that waits for its turn builds as much as is possible without the cluster, then waits.
        """
        if not self.standby.waits or self.settings.replication == device_pool.IN_GRAPH:
            self._serve()
        else:
            server.settle_threads(*self._size)
        self._activity.note("looks for the devices of its towers")
        self._pool = device_pool.gather_pool(self.task, self.settings, self._server)
        self.task = device_pool.as_client(self.task, self._pool)
        self._partition_count = PartitionCount(self.task, self.settings, self._serve)
        self._build()
        self._serve()

    def _serve(self) -> Any:
        """Return this task's server; in the first call, wait for the turn of this process, and start the server."""
        if self._server is None:
            self.standby.wait()
            self._activity.note("opens its port")
            self._server = server.start(self.task, *self._size)
        return self._server

    def _build(self) -> None:
        """Build the graph, which does not change afterwards.

        Raises:
          JobError: it cannot be built, by this attempt or another one.
        """
        self._activity.begin_graph()
        worker = Worker(
            job=self.job,
            task=self.task,
            settings=self.settings,
            args=self.args,
            pool=self._pool,
            folder=self._folder,
            reporter=self._reporter,
            requests=self._requests,
            progress=self._progress,
            activity=self._activity,
            is_first=self.step is None and not self._reporter.attempt,
        )
        with explain_building(self.job):
            self._graph = WorkerGraph(worker, self._partition_count)
        self.replica = self._graph.replica

    def _fields(self) -> Dict[str, Any]:
        fields = self._graph.callbacks.fields()
        metrics = {**fields.get("metrics", {}), **self.replica.stepper.measures}
        return {**fields, "metrics": metrics, "saving_s": self._saving_s}

    def describe(self) -> None:
        """Print one line that describes this worker's training: settings, planned end, and size of the variables."""
        described = description(self._pool, self.settings, self.replica.placement, self._partition_count.number)
        print(f"{self.task.name}: {described}", flush=True)

    def loop(self) -> Outcome:
        """Train to the end, with a new session after each restart of a parameter server; return the outcome."""
        while True:
            session = self._connect()
            try:
                return self._train_in(session)
            except PartitionCountChanged:
                print(f"{self.task.name}: building the graph again, because the chief chose other slices", flush=True)
                server.close(session)
                self._build()
            except server.LOST as error:
                self._refuse_recovery(error)
                self._recover(session, error)

    def _connect(self) -> Any:
        self._activity.begin_session()
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
            self._progress.report_now(self.step)  # so that it is known how far training goes back
        self._activity.lose_session(self.step or 0)
        time.sleep(min(self._pause_s, _LONGEST_PAUSE_S))
        self._pause_s *= 2
        self.replica.stepper.stop_reading()
        if self._graph.checkpoints is not None:
            self._graph.checkpoints.ask_to_end()
        server.close(session)
        if self._graph.checkpoints is not None:
            self._graph.checkpoints.give_up()

    def _train_in(self, session: Any) -> Outcome:
        step = self._join(session)
        stepper = self.replica.stepper
        while max(step, stepper.own_step(step)) < self._graph.last.step and not stepper.has_ended:
            step = self._step(session, step)
        return self._finish(session, step)

    def _join(self, session: Any) -> int:
        self._activity.note("begins to read its data")
        model = self.replica.model
        session.run(model.prepare)
        session.run(model.start_input)
        if model.evaluation is not None:
            model.evaluation.refuse_endless(session, self.settings.evaluate_batches)
        self.step = step = self._graph.joining.join(session, self._activity)
        self._activity.end(step)
        self.replica.stepper.begin_reading(session)
        for each in self._graph.callbacks.beginning:
            each.begin(session)
        self._progress.begin(step)
        if self._graph.checkpoints is not None and self._graph.checkpoints.has_passed_over:
            self._progress.report_now(step)  # at once: the next process would find no trace of them
        self._graph.tracing.begin(step)
        self._activity.begin_steps(lambda: self.replica.stepper.owes(session))
        return step

    def _step(self, session: Any, before: int) -> int:
        """Take the step after the global step ``before``, do what goes with it, and return the global step then."""
        stepper, callbacks = self.replica.stepper, self._graph.callbacks
        own = stepper.own_step(before)
        with self._graph.tracing.watch(session, own, self.replica) as watched:
            step, fetched = self._take_step(watched, own)
            self.step, self._pause_s = step.number, _FIRST_PAUSE_S
            self._activity.end_step(step.number, stepper)
        for each, values in zip(callbacks.fetching, fetched):
            each.note(session, step, values)
        if callbacks.pausing:
            began = time.monotonic()
            for each in callbacks.pausing:
                each.pause(session, step.number)
            self._saving_s += time.monotonic() - began
        self._activity.await_step()
        step_time_ms = self._progress.note(step, stepper)
        if step_time_ms is not None:
            for each in callbacks.reporting:
                each.report(session, step_time_ms)
        return step.number

    def _take_step(self, session: Any, before: int) -> Tuple[Step, List[List[Any]]]:
        """Return a step, and what each callback has fetched with it."""
        wanted = [each.fetches(before) for each in self._graph.callbacks.fetching]
        examples = [] if self.replica.examples is None else [self.replica.examples]
        self._activity.begin_step(tuple(map(bool, wanted)))
        with explain_errors(self.job, self.task, before, self.replica.graph):
            number, loss, found = self.replica.stepper.step(session, [examples, wanted])
        if found is None:
            self._activity.rest()
            self._graph.last.learn(session)
            return Step(number, loss, 0), [[] for _ in wanted]
        counted, fetched = found
        return Step(number, loss, int(counted[0]) if counted else self.task.batch_size), fetched

    def _finish(self, session: Any, step: int) -> Outcome:
        self._activity.begin("ending")
        self.step = step = self.replica.stepper.finish(session, step)
        self._progress.refuse_nothing_trained(self.task.name)
        if not self.task.is_chief:
            self._graph.shutdown.leave(session)
            self._activity.end(step)
            return self._progress.end(Outcome(True, step))
        for index in self._graph.shutdown.wait_for_others(session):
            print(f"worker with index {index} has not left in time; ending without it", flush=True)
        self.step = step = int(session.run(self.replica.global_step))
        print(self.replica.stepper.account(session), flush=True)
        outcome = Outcome(True, step)
        for each in self._graph.callbacks.ending:
            outcome = each.end(session, outcome)
        self._activity.end(step)
        self._progress.report_now(step)  # no step that ends training early is reported otherwise
        self._progress.end(outcome)
        self._graph.shutdown.end_servers(session)
        return outcome
