"""Gradients of several workers, added in the order of the workers: the sum has the same bits in every run.

An accumulator adds gradients in the order in which they come. From three workers on that changes the last bits of a
sum. Here every worker has a queue of its own for each push, and the server adds what is in them, the chief's first.
"""

from functools import reduce
from typing import Any, List, Sequence, Tuple

from cluster.runtime.gradients import merge_rows
from cluster.runtime.server_state import take_all
from cluster.runtime.tf_compat import tf
from cluster.steps.exchange import Push


class Ordered:
    """The gradients of one push, in place of ``cluster.steps.accumulators.Accumulator`` where nothing ever restarts.

    Every worker gives exactly one gradient a step, in its own order, so none needs a stamp.

    Args:
      worker: gives its gradients here.
      receivers: the workers whose queues this graph uses: the chief everybody's, in order; another its own.
    """

    def __init__(self, push: Push, worker: int, receivers: Sequence[int]):
        self.push, self._worker = push, worker
        self._sparse = isinstance(push.grad, tf.IndexedSlices)
        with tf.device(push.device):
            self._queues = {each: self._queue(f"{push.name}/gradients_of_{each}") for each in receivers}

    def _queue(self, name: str) -> Any:
        if not self._sparse:
            return tf.FIFOQueue(-1, [self.push.grad.dtype], [self.push.shape], shared_name=name)
        kinds = [self.push.grad.dtype, self.push.grad.indices.dtype]
        shapes = [[None, *self.push.shape.as_list()[1:]], [None]]
        return tf.PaddingFIFOQueue(-1, kinds, shapes, shared_name=name)

    def give(self, grad: Any, local_step: Any) -> Any:
        """Make the operation that queues this worker's gradient; ``local_step`` is not needed."""
        merged = merge_rows(grad) if self._sparse else grad  # on the worker, so that each row travels once
        with tf.device(self.push.device):
            return self._queues[self._worker].enqueue([merged.values, merged.indices] if self._sparse else [merged])

    def take(self) -> Any:
        """Return the sum ((g0 + g1) + g2) + … of one gradient of every worker, once all are there."""
        # Like pieces.added, and apart from it on purpose: that verifies what is done here.
        with tf.device(self.push.device):
            taken = [queue.dequeue() for queue in self._queues.values()]
            return self._added_rows(taken) if self._sparse else reduce(tf.add, taken)

    def _added_rows(self, taken: Sequence[Any]) -> Any:
        """Add the parts of each row in the order of the workers.

        ``merge_rows`` adds the parts of a row in the order in which they follow each other.
        """
        values, indices = (tf.concat(parts, 0) for parts in zip(*taken))
        return merge_rows(tf.IndexedSlices(values, indices, tf.constant(self.push.shape.as_list(), tf.int64)))

    def unpack(self, taken: Any) -> List[Tuple[Any, Any]]:
        """Return what was taken, as (gradient, variable) for each variable of the push, on its server."""
        with tf.device(self.push.device):
            return self.push.unpack(taken)

    def discard(self) -> Any:
        """Make the operation that empties all queues; it waits for nothing."""
        with tf.device(self.push.device):
            return tf.group(*[take_all(queue) for queue in self._queues.values()])

    def waiting(self) -> Any:
        """Return the number of gradients here, an int32 scalar."""
        with tf.device(self.push.device):
            return tf.add_n([queue.size() for queue in self._queues.values()])

    def set_step(self, step: Any) -> Any:
        """Make an operation that does nothing: a run that is verified has no older gradients."""
        return tf.no_op()
