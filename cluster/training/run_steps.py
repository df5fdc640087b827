"""The steps of a run, as ``ps:0`` counts them: the global step, the last one, and how long each worker's steps take.

The global step on the servers is the one that counts. A worker's graph has a variable of its own for it beside it.

The chief may bring the last step forward. It lies on ``ps:0``, where every worker reads it with each of its steps. A
synchronous step needs a gradient of every worker, so all workers must end at the same step:

    chief     has seen step t end, decides, and writes t + 2
    others    are in step t + 1 meanwhile, and may have read the old number; that step waits for the chief
    all       begin step t + 2 after that, read the new number with it, and end

Without ``train.best.patience`` no last step is read, and none lies there.

A worker writes its step time when it writes its progress, at most once a second. So the chief's summaries cost no
worker anything in a step.
"""

import contextlib
from typing import Any, Dict, Iterator, List, Sequence

from cluster.runtime.devices import ps_device
from cluster.runtime.server_state import kept
from cluster.runtime.tf_compat import tf
from cluster.task import TRAINERS, Task, Train
from cluster.variables.masters import SCOPE


def servers_step() -> Any:
    """Make the servers' global step in the current graph."""
    with tf.device(ps_device(0)):
        return kept(f"{SCOPE}/global_step", [], tf.int64, 0)


@contextlib.contextmanager
def counting_by(step: Any) -> Iterator[None]:
    """Let TensorFlow find ``step`` as the global step: a learning rate that is applied on the servers counts by it."""
    steps = tf.get_collection_ref(tf.GraphKeys.GLOBAL_STEP)
    before, steps[:] = list(steps), [step]
    try:
        yield
    finally:
        steps[:] = before


NOTICE = 2  # steps between the decision and the last one


class LastStep:
    """The last step, as one worker knows it.

    Attributes:
      step: the global step at which this worker ends.
      fetches: what to fetch with each step.
    """

    def __init__(self, settings: Train):
        self.step = settings.last_step
        self.fetches: List[Any] = []
        if settings.best.patience is None:
            return
        with tf.device(ps_device(0)), tf.variable_scope("last_step"):
            step = kept("step", [], tf.int64, 0)
            self._number = tf.placeholder(tf.int64, [])
            self._write = tf.assign(step, self._number).op
            self.fetches = [step.read_value()]

    def begin(self, session: Any) -> None:
        """Chief, before it lets workers join: write the last step."""
        if self.fetches:
            session.run(self._write, {self._number: self.step})

    def learn(self, session: Any) -> None:
        """Read the last step, once the chief has begun."""
        self.note(session.run(self.fetches))

    def note(self, fetched: Sequence[Any]) -> None:
        """Note what was fetched with a step."""
        for number in fetched:
            self.step = min(self.step, int(number))

    def bring_forward(self, session: Any, step: int) -> None:
        """Chief, after ``step``: end training ``NOTICE`` steps later, if it does not end before."""
        self.step = min(self.step, step + NOTICE)
        self.begin(session)


class StepTimes:
    """The last step time of every worker, in milliseconds.

    The time is 0 for a worker that has not reported yet. Checkpoints do not have these times.
    """

    def __init__(self, task: Task):
        with tf.device(ps_device(0)), tf.variable_scope("step_times"):
            self._times = kept("ms", [task.num_workers], tf.float32, 0)
            self._own = tf.placeholder(tf.float32, [])
            self._report = tf.scatter_update(self._times, task.worker_index, self._own).op
        self._names = worker_names(task)

    def begin(self, session: Any) -> None:
        """Chief, before it lets workers join: reset all step times to 0."""
        session.run(self._times.initializer)

    def report(self, session: Any, step_time_ms: float) -> None:
        """Write this worker's step time."""
        session.run(self._report, {self._own: step_time_ms})

    def scalars(self) -> Dict[str, Any]:
        """Before the graph is finished: the tensor of each worker's time, by a name for it."""
        times = tf.unstack(self._times.read_value(), num=len(self._names))
        return {f"step_time_ms/{name}": time for name, time in zip(self._names, times)}


def worker_names(task: Task) -> List[str]:
    """``chief_0``, ``worker_0``, … in the order of ``Task.worker_index``."""
    return [f"{role}_{index}" for role in TRAINERS for index in range(len(task.cluster.get(role, ())))]
