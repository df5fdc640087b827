"""The evaluator: a task that follows the run's checkpoints and measures each on held-out examples.

The evaluator takes no part in training and needs no shared filesystem. It asks the chief's server for the newest
checkpoint, and copies the checkpoint over the same connection. So the evaluator may be slow, fail or start again
without any effect on training. If checkpoints appear during a measurement, the evaluator measures the newest of them
next.

SIGTERM means that the run is over. It ends the evaluator at once, also while the evaluator waits for the chief. During
a measurement, the evaluator first completes the measurement.
"""

import signal
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Dict, Iterator, Mapping, Optional

from cluster.checkpoints.finished_files import ChiefFiles, open_reader
from cluster.checkpoints.streamed_saver import StreamedSaver
from cluster.errors import JobError
from cluster.job import Job
from cluster.model.evaluation import Evaluation
from cluster.protocol.outcome import Outcome, Progress, Reporter
from cluster.recommend.tables.stored_tables import FrozenTables
from cluster.runtime.devices import tower_devices
from cluster.runtime.tf_compat import tf
from cluster.runtime.waiting import listens, wait_for
from cluster.scoring.measures import in_words
from cluster.steps.extension import rows_from
from cluster.task import Task, Train
from cluster.variables.masters import saved_variables

_AWAY = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.DeadlineExceededError)
_HERE = "/device:CPU:0"
POLL_S = 0.5
GONE_S = 15.0  # a chief that starts again answers within this time


def follow(job: Job, task: Task, settings: Train, args: Mapping[str, Any], reporter: Reporter) -> Outcome:
    """Measure the newest checkpoint again and again, and return the outcome of the task.

    The function returns when the chief has gone, when the checkpoint of the last step is measured, or when SIGTERM
    has arrived during a measurement.

    Raises:
      JobError: the job has no function ``evaluate``, or its code fails.
    """
    if job.evaluate is None:
        raise JobError(
            f"{job.path}: expected a function evaluate for the evaluator, found none; add one, or omit the evaluator"
        )
    follower = EvaluationGraph(job, task, settings, args)
    reporter.progress(Progress(0), force=True)
    reporter.heartbeat.begin_phase("following")
    reporter.recorder.end(0)
    wait_for(f"the chief at {follower.chief.address}", lambda: listens(follower.chief.address))
    while follower.step < settings.last_step and not follower.is_ending and _answers(follower.chief.address):
        reporter.recorder.begin("evaluating")
        if follower.measure_next():
            reporter.recorder.end(follower.step)
            _report(reporter, follower)
        else:
            time.sleep(POLL_S)
    return Outcome(True, follower.step, metrics=follower.metrics)


def _answers(address: str) -> bool:
    until = time.monotonic() + GONE_S
    while not listens(address):
        if time.monotonic() > until:
            return False
        time.sleep(POLL_S)
    return True


def _report(reporter: Reporter, follower: "EvaluationGraph") -> None:
    metrics = follower.metrics
    print(f"step {follower.step}: {in_words(metrics)}", flush=True)
    reporter.progress(Progress(follower.step, metrics.get("loss"), metrics=metrics), force=True)


class EvaluationGraph:
    """The graph and the session that measure checkpoints, and the newest result.

    ``step`` and ``metrics`` are those of the newest measured checkpoint; 0 and {} before the first measurement.
    ``is_ending``: whether SIGTERM has arrived during a measurement. ``chief``: the chief's checkpoint files.
    """

    def __init__(self, job: Job, task: Task, settings: Train, args: Mapping[str, Any]):
        devices = tower_devices(settings)
        self.step, self._batches = 0, settings.evaluate_batches
        self.metrics: Dict[str, float] = {}
        self.is_ending = False
        self._unreadable: Optional[str] = None  # the path of a checkpoint
        self.chief = ChiefFiles(task)
        task = replace(task, batch_size=settings.tower_batch_size * len(devices))
        with tf.Graph().as_default() as graph:
            tf.train.get_or_create_global_step()  # as in training: the model may read it
            self._tables = FrozenTables(_HERE)
            with rows_from(self._tables.look_up):
                self._evaluation = Evaluation.build(job.with_args(args), task, args, f"/device:{devices[0]}")
            self._saver = StreamedSaver(saved_variables(tf.global_variables()), _HERE)
            prepare = tf.group(tf.local_variables_initializer(), tf.tables_initializer())
        self._session = tf.Session(graph=graph, config=_config())
        self._session.run(prepare)

    def measure_next(self) -> bool:
        """Measure the newest checkpoint, and return True; return False if no new checkpoint can be read."""
        path = self._newest()
        step = int(path.rpartition("-")[2]) if path else 0
        if path is None or step <= self.step or path == self._unreadable:
            return False
        try:
            with tempfile.TemporaryDirectory(prefix="checkpoint-") as folder:
                self._restore(self.chief.fetch(path, folder))
        except (
            tf.errors.OpError,
            ValueError,
            OSError,
        ) as error:  # removed, broken, no room here, or the chief has gone
            print(f"checkpoint {path} could not be fetched: {str(error).splitlines()[0]}", flush=True)
            self._unreadable = None if isinstance(error, _AWAY) else path  # the next one is measured
            return False
        with self._deferring_sigterm():
            self.metrics = self._evaluation.run(self._session, self._batches) if self._evaluation else {}
        self.step = step
        return True

    def _restore(self, path: str) -> None:
        self._saver.restore(self._session, path)
        self._tables.load(self._session, open_reader(path))

    @contextmanager
    def _deferring_sigterm(self) -> Iterator[None]:
        """Note SIGTERM here instead of ending the process; only for the main thread."""

        def remember(*_: Any) -> None:
            self.is_ending = True

        earlier = signal.signal(signal.SIGTERM, remember)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, earlier)

    def _newest(self) -> Optional[str]:
        try:
            return self.chief.newest()
        except tf.errors.OpError:
            return None


def _config() -> Any:
    config = tf.ConfigProto(allow_soft_placement=True)
    config.gpu_options.allow_growth = True
    return config
