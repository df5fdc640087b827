"""A worker's graph, with all that the worker runs in it: its model and steps, its joining, and its callbacks.

The callbacks act in the order of one list, ``WorkerGraph._make_callbacks``.
"""

from dataclasses import dataclass
from typing import List, Optional, Sequence

from cluster.checkpoints.saver import Checkpoints
from cluster.job import Job
from cluster.model.device_pool import PoolMember, lent_tasks
from cluster.protocol.outcome import Reporter
from cluster.protocol.save_request import SaveRequests
from cluster.runtime.devices import worker_device
from cluster.runtime.server import Shutdown
from cluster.runtime.tf_compat import tf
from cluster.task import Task, Train
from cluster.trace.recording import Tracing
from cluster.training.callbacks import Callback, Callbacks
from cluster.training.chief_pauses import BestCheckpoint, ChiefSaving, Evaluating, Verifying
from cluster.training.graph_builder import Builder
from cluster.training.job_warnings import FirstBatches, ReadArgs, Scopes, UnreadArgs
from cluster.training.joining import FirstValues, Joining
from cluster.training.reporting import Activity, TrainingProgress
from cluster.training.run_steps import LastStep, StepTimes, TrainingMetrics
from cluster.training.summaries import Summaries
from cluster.variables.partition_count import PartitionCount
from cluster.verify.verification import Verification


@dataclass(frozen=True)
class Worker:
    """The parts of a training worker that stay the same when a new graph replaces its graph.

    ``job`` is the job with ``args``. ``pool`` has the devices of the worker's towers. ``folder`` is the folder of the
    chief's checkpoints, None for no checkpoints. ``is_first``: whether this process and all earlier processes of the
    task have taken no step yet.
    """

    job: Job
    task: Task
    settings: Train
    args: ReadArgs
    pool: Sequence[PoolMember]
    folder: Optional[str]
    reporter: Reporter
    requests: SaveRequests
    progress: TrainingProgress
    activity: Activity
    is_first: bool


class WorkerGraph:
    """The graph of one worker, which is finalized once this object is created.

    Attributes:
      replica: the model, and its steps.
      checkpoints: the chief's checkpoints; None on another worker.
      last: the last step of the run.
    """

    def __init__(self, worker: Worker, partition_count: PartitionCount):
        task, settings, pool = worker.task, worker.settings, worker.pool
        self._worker = worker
        self.replica = Builder(worker.job, task, settings, worker.args, pool, partition_count.choose).build()
        host = worker_device(task.role, task.index)
        with self.replica.graph.as_default(), tf.device(host):
            partition_count.keep()
            self.shutdown = Shutdown(task, lent_tasks(pool))
            self.checkpoints = self._make_checkpoints(host) if task.is_chief else None
            self.last = LastStep(settings)
            self.callbacks = Callbacks(self._make_callbacks())
            self.joining = Joining(
                task=task,
                replica=self.replica,
                partition_count=partition_count,
                last=self.last,
                opening=self.callbacks.opening,
                checkpoints=self.checkpoints,
                first=FirstValues(task, self.replica, host, settings.warm_start),
            )
        worker.activity.describe(self.replica)
        self.tracing = Tracing(task.name, settings, worker.reporter.beside("trace"))
        self.replica.graph.finalize()

    def _make_checkpoints(self, host: str) -> Checkpoints:
        settings = self._worker.settings
        return Checkpoints(
            settings.checkpoint,
            self.replica.variables,
            host,
            self._worker.folder,
            rows=self.replica.saved_rows,
            still=self.replica.stepper.paused,
            while_training=not settings.best.metric,  # which measures what it saves
        )

    def _make_callbacks(self) -> List[Callback]:
        """Make all that this worker does beside its steps, in the order in which it does so."""
        worker, replica, model = self._worker, self.replica, self.replica.model
        times = StepTimes(worker.task)
        metrics = TrainingMetrics(worker.task, model.measured, self.last) if model.measured else None
        batches = FirstBatches(worker.job, worker.pool, model.batches if model.place is None else [], worker.is_first)
        of_all: List[Callback] = [times, self.last, *([metrics] if metrics else []), batches]
        if self.checkpoints is None:
            return of_all
        summaries = Summaries(
            worker.reporter.beside("summaries"),
            {**replica.stepper.scalars(), **times.scalars()},
            worker.settings.last_step,
            worker.task.batch_size * worker.task.num_workers,
            metrics,
        )
        doubts = [UnreadArgs(worker.args, worker.job), Scopes(worker.job, replica.graph)]
        return [*of_all, *doubts, summaries, *self._make_pauses(self.checkpoints)]

    def _make_pauses(self, checkpoints: Checkpoints) -> List[Callback]:
        """Make what the chief does between two steps: it saves before it measures, which it does before it compares."""
        worker, settings, activity, replica = self._worker, self._worker.settings, self._worker.activity, self.replica
        made: List[Callback] = [ChiefSaving(worker.requests, checkpoints, replica.stepper, worker.progress, activity)]
        if replica.model.evaluation is not None and not settings.verify:
            made.append(Evaluating(replica.model.evaluation, replica.stepper, settings.evaluate_batches))
        if settings.best.metric:
            made.append(BestCheckpoint(settings, checkpoints, self.last, replica, activity))
        if settings.verify:
            devices = worker.pool[0].devices
            verification = Verification(worker.job, worker.task, devices, settings, worker.args, replica)
            made.append(Verifying(verification, activity))
        return made
