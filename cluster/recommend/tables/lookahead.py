"""Lookups ahead of their step: during a step, the servers look up the rows of a later batch.

    worker   batch t + n comes, and its ids are looked up       -> a queue of n batches with their rows
    worker   batch t leaves the queue; the model computes with it, and sends its gradients
    ps       applies these gradients only after it has looked up the rows of batch t + n

No server updates a row before every worker has sent its gradient. So batch t + n has exactly the rows after the update
of step t - 1: the rows are n updates behind, in every run. The method is the bounded staleness of Q. Ho et al., "More
Effective Distributed ML via a Stale Synchronous Parallel Parameter Server", NIPS 2013, applied only to tables.
"""

from typing import Any, List, Optional, Sequence, Tuple

from cluster.runtime.subgraph import copied
from cluster.runtime.tf_compat import tf


class Lookahead:
    """The queues in which batches, and the rows of their lookups, wait for ``steps`` steps.

    Args:
      steps: the number of steps from the lookups of a batch to the training on this batch.
      boundary: the tensors of a batch as the model receives them: identities of the dataset's tensors.
      device: the device of the worker's memory.
      worker: the index of the worker.

    Attributes:
      beside: the operations to run together with each step; available after ``close``.
    """

    def __init__(self, steps: int, boundary: Sequence[Any], device: str, worker: int = 0):
        self._steps, self._device, self._worker = steps, device, worker
        self._boundary = list(boundary)
        self._newest = {each.name: each.op.inputs[0] for each in boundary}
        self._queues: List[Any] = []
        self._puts: List[Any] = []
        self._own: List[Any] = []
        self._taken: List[Any] = []

    def of_newest(self, tensors: Sequence[Any]) -> List[Any]:
        """Return copies of ``tensors`` that are computed from the newest batch, and not from the model's own batch."""
        self._own += [each.op for each in tensors]
        return copied(tensors, self._newest)

    def delay(self, structure: Any) -> Any:
        """Return the tensors of ``structure`` with the values that they had ``steps`` steps before."""
        return self._delay(structure, self._device, None)

    def delay_there(self, structure: Any, device: str) -> Any:
        """Return the tensors of ``structure`` with the values that they had ``steps`` steps before.

        Meanwhile, the values wait in the memory of the server ``device``.
        """
        return self._delay(structure, device, f"lookahead/{self._worker}/{len(self._queues)}")

    def _delay(self, structure: Any, device: str, name: Optional[str]) -> Any:
        tensors = tf.nest.flatten(structure)
        with tf.device(device), tf.control_dependencies(None):
            queue = tf.FIFOQueue(self._steps + 1, [each.dtype for each in tensors], shared_name=name)
            self._puts.append(queue.enqueue(tensors))
            self._queues.append(queue)
            taken = queue.dequeue()
        delayed = list(taken) if isinstance(taken, (list, tuple)) else [taken]
        self._taken.append(delayed[0].op)
        for old, new in zip(tensors, delayed):
            new.set_shape(old.shape)
        return tf.nest.pack_sequence_as(structure, delayed)

    def close(self) -> None:
        """Make the model compute with the delayed batches; the caller adds no lookup afterwards."""
        for each, delayed in zip(self._boundary, self.delay([each.op.inputs[0] for each in self._boundary])):
            each.op._update_input(0, delayed)
        with tf.device(self._device):
            self._put = tf.group(*self._puts)
            # The model's own ids, too: an author's checks of them may hang on these. And each queue gives what it gets:
            # a table without a gradient has a queue from which nothing else takes.
            self.beside = [self._put, *self._own, *self._taken]
        self._take = [_size_and_take(queue) for queue in self._queues]

    def begin(self, session: Any) -> None:
        """Fill the queues with ``steps`` batches, once this worker has joined.

        Before that, the queues drop the elements that an earlier, abandoned session has left in them.
        """
        for size, take in self._take:
            for _ in range(session.run(size)):
                session.run(take)
        for _ in range(self._steps):
            session.run(self._put)


def _size_and_take(queue: Any) -> Tuple[Any, Any]:
    """Return the size of a queue, and the operation that takes one element from it; both stay on its device."""
    with tf.device(queue.queue_ref.device):
        return queue.size(), tf.group(queue.dequeue())
