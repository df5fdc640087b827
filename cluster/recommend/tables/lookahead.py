"""Batches that wait for their rows: the lookups of a later step run under the present one.

    worker   batch t + n comes, and its ids are looked up       -> a queue of n batches with their rows
    worker   batch t leaves the queue; the model computes with it, and sends its gradients
    ps       takes none of these before it has taken the rows of batch t + n

No server updates a row before every worker has given its gradient. So batch t + n has exactly the rows after the update
of step t - 1: they are n updates behind, in every run. Bounded staleness is that of Q. Ho et al., "More Effective
Distributed ML via a Stale Synchronous Parallel Parameter Server", NIPS 2013, for tables alone.
"""

from typing import Any, List, Optional, Sequence, Tuple

from cluster.runtime.subgraph import copied
from cluster.runtime.tf_compat import tf


class Lookahead:
    """Let batches wait for so many steps.

    Args:
      steps: how many.
      boundary: the tensors of a batch as the model gets them: identities of what the dataset gives.
      device: of the worker's memory.
      worker: its index.

    Attributes:
      beside: operations to run beside each step, available after ``close``.
    """

    def __init__(self, steps: int, boundary: Sequence[Any], device: str, worker: int = 0):
        self._steps, self._device, self._worker = steps, device, worker
        self._boundary = list(boundary)
        self._newest = {each.name: each.op.inputs[0] for each in boundary}
        self._queues: List[Any] = []
        self._puts: List[Any] = []
        self._own: List[Any] = []

    def of_newest(self, tensors: Sequence[Any]) -> List[Any]:
        """Return tensors that the model makes of a batch, made of the newest batch instead."""
        self._own += [each.op for each in tensors]
        return copied(tensors, self._newest)

    def delay(self, structure: Any) -> Any:
        """Return the same tensors as they were so many steps before."""
        return self._delay(structure, self._device, None)

    def delay_there(self, structure: Any, device: str) -> Any:
        """Return the same tensors of a server as they were so many steps before; they stay in its memory."""
        return self._delay(structure, device, f"lookahead/{self._worker}/{len(self._queues)}")

    def _delay(self, structure: Any, device: str, name: Optional[str]) -> Any:
        tensors = tf.nest.flatten(structure)
        with tf.device(device), tf.control_dependencies(None):
            queue = tf.FIFOQueue(self._steps + 1, [each.dtype for each in tensors], shared_name=name)
            self._puts.append(queue.enqueue(tensors))
            self._queues.append(queue)
            taken = queue.dequeue()
        delayed = list(taken) if isinstance(taken, (list, tuple)) else [taken]
        for old, new in zip(tensors, delayed):
            new.set_shape(old.shape)
        return tf.nest.pack_sequence_as(structure, delayed)

    def close(self) -> None:
        """Let the model have delayed batches. No lookup is made afterwards."""
        for each, delayed in zip(self._boundary, self.delay([each.op.inputs[0] for each in self._boundary])):
            each.op._update_input(0, delayed)
        with tf.device(self._device):
            self._put = tf.group(*self._puts)
            # The model's own ids, too: an author's checks of them may hang on these.
            self.beside = [self._put, *self._own]
        self._take = [_size_and_take(queue) for queue in self._queues]

    def begin(self, session: Any) -> None:
        """Fill the queue, once this worker has joined. What a session that was given up has left there goes."""
        for size, take in self._take:
            for _ in range(session.run(size)):
                session.run(take)
        for _ in range(self._steps):
            session.run(self._put)


def _size_and_take(queue: Any) -> Tuple[Any, Any]:
    """Return the size of a queue, and the operation that takes one element from it; both stay on its device."""
    with tf.device(queue.queue_ref.device):
        return queue.size(), tf.group(queue.dequeue())
