"""Each worker's step times on ``ps:0``, where the chief can read them.

A worker writes its step time when it writes its progress, at most once a second. So the chief's
summaries cost no worker anything in a step.
"""

from typing import Any, Dict, List

from cluster.runtime.devices import ps_device
from cluster.runtime.server_state import kept
from cluster.runtime.tf_compat import tf
from cluster.task import TRAINERS, Task


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
