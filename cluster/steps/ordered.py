"""Gradients of several workers, added in the order of the workers: the sum has the same bits in every run.

An accumulator adds gradients in the order in which they come. From three workers on that changes the last bits of a
sum. Here every worker has a queue of its own for each load, and the server adds what is in them, the chief's first.
"""

from functools import reduce
from typing import Any, List, Sequence, Tuple

from cluster.runtime.gradients import merge_rows
from cluster.runtime.server_state import emptied
from cluster.runtime.tf_compat import tf
from cluster.steps.exchange import Load


class Ordered:
    """The gradients of one load, in place of ``cluster.steps.accumulators.Accumulator`` where nothing ever restarts.

    Every worker gives exactly one gradient a step, in its own order, so none needs a stamp.

    Args:
      worker: gives its gradients here.
      told: the workers whose queues this graph uses: the chief everybody's, in order; another its own.
    """

    def __init__(self, load: Load, worker: int, told: Sequence[int]):
        self.load, self._worker = load, worker
        self._sparse = isinstance(load.grad, tf.IndexedSlices)
        with tf.device(load.device):
            self._queues = {each: self._queue(f"{load.name}/gradients_of_{each}") for each in told}

    def _queue(self, name: str) -> Any:
        if not self._sparse:
            return tf.FIFOQueue(-1, [self.load.grad.dtype], [self.load.shape], shared_name=name)
        kinds = [self.load.grad.dtype, self.load.grad.indices.dtype]
        shapes = [[None, *self.load.shape.as_list()[1:]], [None]]
        return tf.PaddingFIFOQueue(-1, kinds, shapes, shared_name=name)

    def give(self, grad: Any, local_step: Any) -> Any:
        """Make the operation that queues this worker's gradient; ``local_step`` is not needed."""
        merged = merge_rows(grad) if self._sparse else grad  # on the worker, so that each row travels once
        with tf.device(self.load.device):
            return self._queues[self._worker].enqueue([merged.values, merged.indices] if self._sparse else [merged])

    def take(self) -> Any:
        """Return the sum ((g0 + g1) + g2) + … of one gradient of every worker, once all are there."""
        # Like pieces.added, and apart from it on purpose: that verifies what is done here.
        with tf.device(self.load.device):
            taken = [queue.dequeue() for queue in self._queues.values()]
            return self._added_rows(taken) if self._sparse else reduce(tf.add, taken)

    def _added_rows(self, taken: Sequence[Any]) -> Any:
        """Add the parts of each row in the order of the workers.

        ``merge_rows`` adds the parts of a row in the order in which they follow each other.
        """
        values, indices = (tf.concat(parts, 0) for parts in zip(*taken))
        return merge_rows(tf.IndexedSlices(values, indices, tf.constant(self.load.shape.as_list(), tf.int64)))

    def unpacked(self, taken: Any) -> List[Tuple[Any, Any]]:
        """Return what was taken, as (gradient, variable) for each variable of the load, on its server."""
        with tf.device(self.load.device):
            return self.load.unpack(taken)

    def discard(self) -> Any:
        """Make the operation that empties all queues; it waits for nothing."""
        with tf.device(self.load.device):
            return tf.group(*[emptied(queue) for queue in self._queues.values()])

    def waiting(self) -> Any:
        """Return the number of gradients here, an int32 scalar."""
        with tf.device(self.load.device):
            return tf.add_n([queue.size() for queue in self._queues.values()])

    def set_step(self, step: Any) -> Any:
        """Make an operation that does nothing: a run that is verified has no older gradients."""
        return tf.no_op()
