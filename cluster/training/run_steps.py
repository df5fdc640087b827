"""Numbers that workers store on ``ps:0``: the global step, the last step, step times, newest examples for metrics.

The run counts its steps in the servers' global step. Each worker's graph also has a copy of this variable.

The chief may end training early. Every worker reads the number of the last step with each of its own steps. A
synchronous step needs a gradient of every worker, so all workers must end at the same step:

    chief     has seen step t end, decides, and writes t + 2
    others    are in step t + 1 meanwhile, and may have read the old number; that step waits for the chief
    all       begin step t + 2 after that, read the new number with it, and end

Without ``train.best.patience``, ``ps:0`` has no number of a last step, and no worker reads one.

A worker writes its step time when it writes its progress, at most once a second. So the chief's summaries add no work
to a worker's step.

Metrics are computed from the newest trained examples of all workers. The score of an example comes from the step that
trains on it, before the example changes the model. As long as each example is new, this is as valid as held-out data
("progressive validation": Blum, Kalai and Langford, 1999). A worker writes its newest examples every few seconds; the
chief reads the examples of all workers, and measures.
"""

import contextlib
import time
from typing import Any, Callable, Dict, Iterator, List, Optional

from cluster.runtime.devices import ps_device
from cluster.runtime.server_state import kept
from cluster.runtime.tf_compat import tf
from cluster.scoring.examples import NewestExamples, pack, share_of, together, unpack
from cluster.scoring.metric_columns import Columns
from cluster.task import TRAINERS, Task, Train
from cluster.training.callbacks import Callback, Step
from cluster.variables.masters import SCOPE


def servers_step() -> Any:
    """Create the variable of the servers' global step in the current graph."""
    with tf.device(ps_device(0)):
        return kept(f"{SCOPE}/global_step", [], tf.int64, 0)


@contextlib.contextmanager
def counting_by(step: Any) -> Iterator[None]:
    """Inside this context, make ``step`` TensorFlow's global step, so that learning rates depend on ``step``."""
    steps = tf.get_collection_ref(tf.GraphKeys.GLOBAL_STEP)
    before, steps[:] = list(steps), [step]
    try:
        yield
    finally:
        steps[:] = before


NOTICE = 2  # steps between the decision and the last one


class LastStep(Callback):
    """The last step of the run, as far as one worker knows.

    ``step`` is the global step at which this worker ends.
    """

    def __init__(self, settings: Train):
        self.step = settings.last_step
        self._fetches: List[Any] = []
        if settings.best.patience is None:
            return
        with tf.device(ps_device(0)), tf.variable_scope("last_step"):
            step = kept("step", [], tf.int64, 0)
            self._number = tf.placeholder(tf.int64, [])
            self._write = tf.assign(step, self._number).op
            self._fetches = [step.read_value()]

    def fetches(self, step: int) -> List[Any]:
        """Return the tensor of the last step on ``ps:0``; [] in a run whose last step cannot change."""
        return self._fetches

    def note(self, session: Any, step: Step, fetched: List[Any]) -> None:
        """Store the number of the last step, which ``step`` has fetched."""
        self._learn(fetched)

    def open(self, session: Any) -> None:
        """As the chief, write the last step to ``ps:0``."""
        if self._fetches:
            session.run(self._write, {self._number: self.step})

    def learn(self, session: Any) -> None:
        """Read the last step from ``ps:0``, once the chief has begun the run."""
        self._learn(session.run(self._fetches))

    def _learn(self, fetched: List[Any]) -> None:
        for number in fetched:
            self.step = min(self.step, int(number))

    def bring_forward(self, session: Any, step: int) -> None:
        """As the chief, end training ``NOTICE`` steps after ``step``, unless it ends earlier anyway."""
        self.step = min(self.step, step + NOTICE)
        self.open(session)


class StepTimes(Callback):
    """The newest step time of every worker, in milliseconds, on ``ps:0``.

    The time is 0 for a worker that has not reported yet. Checkpoints do not have these times.
    """

    def __init__(self, task: Task):
        with tf.device(ps_device(0)), tf.variable_scope("step_times"):
            self._times = kept("ms", [task.num_workers], tf.float32, 0)
            self._own = tf.placeholder(tf.float32, [])
            self._report = tf.scatter_update(self._times, task.worker_index, self._own).op
        self._names = worker_names(task)

    def open(self, session: Any) -> None:
        """As the chief, reset all step times to 0."""
        session.run(self._times.initializer)

    def report(self, session: Any, step_time_ms: float) -> None:
        """Write this worker's step time."""
        session.run(self._report, {self._own: step_time_ms})

    def scalars(self) -> Dict[str, Any]:
        """Return the tensor of each worker's step time, by its tag; call this method before the graph is finalized."""
        times = tf.unstack(self._times.read_value(), num=len(self._names))
        return {f"step_time_ms/{name}": time for name, time in zip(self._names, times)}


def worker_names(task: Task) -> List[str]:
    """Return the workers' names ``chief_0``, ``worker_0``, … in the order of ``Task.worker_index``."""
    return [f"{role}_{index}" for role in TRAINERS for index in range(len(task.cluster.get(role, ())))]


EVERY_S = 5.0
_PAUSES = 20  # times as long as measuring took: at most a 20th of the time goes into it


class TrainingMetrics(Callback):
    """The callback that keeps one worker's newest examples, and on the chief computes the metrics of all workers.

    Args:
      columns: the columns that the model's metrics need of each example.
      last: the last step of the run, at which the chief always measures.

    ``latest`` has the chief's newest values by name, NaN for an undefined value; it is empty before the chief measures.
    """

    def __init__(self, task: Task, columns: Columns, last: LastStep, clock: Callable[[], float] = time.monotonic):
        self.latest: Dict[str, float] = {}
        self._columns, self._task, self._last, self._clock = columns, task, last, clock
        self._newest = NewestExamples(len(columns.tensors), share_of(task.num_workers))
        self._due_at: Optional[float] = None
        indices = range(task.num_workers) if task.is_chief else [task.worker_index]
        self._windows = [_window(index) for index in indices if task.num_workers > 1]
        self._read = [each.read_value() for each in self._windows[1:]]  # the chief has its own
        self._own = tf.placeholder(tf.string, [])
        self._write = [tf.assign(each, self._own).op for each in self._windows[:1] if not task.is_chief]

    def fetches(self, step: int) -> List[Any]:
        """Return the columns of the metrics, which each step fetches."""
        return self._columns.tensors

    def open(self, session: Any) -> None:
        """As the chief, clear the examples of all workers on ``ps:0``."""
        session.run([each.initializer for each in self._windows])

    def note(self, session: Any, step: Step, fetched: List[Any]) -> None:
        """Collect the examples of ``step``. Every ``EVERY_S`` seconds, write them, or as the chief compute the metrics.

        The interval is longer if this work takes long. The chief also computes metrics at the last step.

        Raises:
          JobError: a metric has no meaning for its examples.
        """
        self._newest.add(fetched)
        is_last = self._task.is_chief and step.number >= self._last.step
        began = self._clock()
        if self._due_at is None or is_last or began >= self._due_at:
            self._measure(session)
            self._due_at = began + max(EVERY_S, _PAUSES * (self._clock() - began))

    def _measure(self, session: Any) -> None:
        newest = self._newest.columns()
        known = [] if newest is None else [newest]
        if not self._task.is_chief:
            if known:
                session.run(self._write, {self._own: pack(*known)})
            return
        known += [unpack(data) for data in session.run(self._read) if data]
        if known:
            measurement = self._columns.measurement()
            measurement.add(together(known))
            self.latest = measurement.measured().values

    def fields(self) -> Dict[str, Any]:
        """Return the field of ``Progress`` with the newest metrics."""
        return {"metrics": self.latest}


def _window(index: int) -> Any:
    with tf.device(ps_device(0)), tf.variable_scope("training_metrics"):
        return kept(f"worker_{index}", [], tf.string, "")
