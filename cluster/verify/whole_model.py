"""The model with the towers of every worker, on one set of variables, as plain TensorFlow builds it in one process."""

from typing import Any, Dict, List, Mapping, NamedTuple, Sequence

from cluster.job import Job
from cluster.model.device_pool import Member
from cluster.model.model_graph import Gradients, ModelGraph, Part
from cluster.runtime.tf_compat import tf
from cluster.task import Task, Train
from cluster.updates.nan_guard import guard


class OfWorker(NamedTuple):
    """One worker's part of a step: gradients by variable name, and the batch's weight.

    The weight is None if it is fixed.
    """

    grads: Dict[str, Any]
    weight: Any


class WholeModel(ModelGraph):
    """The model of a job in the current graph, for the batches of all workers.

    Args:
      tasks: the workers, the chief first; ``batch_size`` of each is that of its towers together.
      devices: of the towers of each.
      batches: one for each worker.

    Attributes:
      workers: what each of them gives, in their order.
    """

    def __init__(
        self,
        job: Job,
        tasks: Sequence[Task],
        devices: Sequence[str],
        train: Train,
        args: Mapping[str, Any],
        batches: Sequence[Dict[str, Any]],
    ):
        super().__init__(job, tasks[0], train, args, [Member(task, list(devices)) for task in tasks])
        self._given = list(batches)
        self.workers: List[OfWorker] = []

    def _inputs(self, estimate: bool) -> Any:
        return self._given, tf.no_op()

    def _differentiate(self, parts: Sequence[Part]) -> Gradients:
        """Return the chief's gradients; those of all workers are in ``workers``."""
        each = len(parts) // len(self.pool)
        found = []
        for index, member in enumerate(self.pool):
            found.append(self._sum_of(member.task, parts[index * each : (index + 1) * each], len(member.devices)))
            self.workers.append(self._of_worker(found[-1], self.losses[-each:]))
        return found[0]

    def _of_worker(self, found: Gradients, losses: Sequence[Any]) -> OfWorker:
        loss = tf.reduce_mean(tf.stack([tf.reduce_mean(each) for each in losses]))
        grads = {variable.op.name: grad for grad, variable in found.pairs if grad is not None}
        _, pairs = guard(loss, grads, self.train.on_nan, found.scales)
        return OfWorker({name: grad for grad, name in pairs}, self.parts.weight)

    def _evaluation(self, setter: Any) -> None:
        """Make no evaluation: a step needs none."""
