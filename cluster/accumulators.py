"""Where gradients of several workers meet: one accumulator for every load, on its server.

TensorFlow's accumulators drop a gradient whose local step is older than theirs, and count
one step further each time that gradients are taken.
"""

from typing import Any, List, Tuple

from cluster.engine import tf
from cluster.exchange import Load
from cluster.wire import Wire


class Accumulator:
    """The gradients of one load, in which ``wire`` says how they come; ``number`` workers make a step.

    Dense gradients are averaged by TensorFlow. Its accumulator for sparse ones divides each
    row by the number of workers that sent *that row*, which is not the gradient of the mean
    loss, and expects rows in order and without repetition. So here rows are merged before
    they are sent and summed on the server; every gradient has a row more, of ones, so that
    the sum also has the number of gradients to divide by: with backup workers it varies.
    """

    def __init__(self, load: Load, number: int, wire: Wire):
        self.load = load
        self._number, self._wire = number, wire
        self._sparse = isinstance(load.grad, tf.IndexedSlices)
        make = tf.SparseConditionalAccumulator if self._sparse else tf.ConditionalAccumulator
        shape = _with_a_row_more(load.shape) if self._sparse else load.shape
        reduction = "SUM" if self._sparse else "MEAN"
        dtype = load.variables[0].dtype.base_dtype
        with tf.device(load.device):
            self._inner = make(dtype, shape=shape, shared_name=f"{load.name}/gradients", reduction_type=reduction)

    def give(self, grad: Any, local_step: Any) -> Any:
        """The operation that adds this worker's gradient of step ``local_step``."""
        if not self._sparse:
            with tf.device(self.load.device):
                grad = self._wire.widen(grad) if self.load.parcel else grad
                return self._inner.apply_grad(grad, local_step=local_step)
        counted = _counted(merge_rows(grad), self.load.shape)  # on the worker, so that each row travels once
        with tf.device(self.load.device):
            return self._inner.apply_indexed_slices_grad(counted, local_step=local_step)

    def take(self) -> Any:
        """The mean gradient, once all that make a step are there; leaves the accumulator empty."""
        with tf.device(self.load.device):
            if not self._sparse:
                return self._inner.take_grad(self._number)
            total = self._inner.take_indexed_slices_grad(self._number)
            shape = tf.constant(self.load.shape.as_list(), tf.int64)
            return tf.IndexedSlices(total.values[:-1] / total.values[-1:], total.indices[:-1], shape)

    def unpacked(self, taken: Any) -> List[Tuple[Any, Any]]:
        """What was taken, as (gradient, variable) for each variable of the load, on its server."""
        with tf.device(self.load.device):
            return self.load.unpack(taken)

    def discard(self) -> Any:
        """The operation that takes what is there; waits for one gradient if there is none."""
        with tf.device(self.load.device):
            return self._inner.take_indexed_slices_grad(1).values if self._sparse else self._inner.take_grad(1)

    def waiting(self) -> Any:
        """The number of gradients there, an int32 scalar."""
        return self._inner.num_accumulated()

    def set_step(self, step: Any) -> Any:
        """The operation that makes gradients older than ``step`` unwelcome."""
        return self._inner.set_global_step(step)


def merge_rows(grad: Any) -> Any:
    """The same sparse gradient with its rows in order and each row once."""
    rows, where = tf.unique(grad.indices)
    values = tf.math.unsorted_segment_sum(grad.values, where, tf.size(rows))
    order = tf.argsort(rows)
    return tf.IndexedSlices(tf.gather(values, order), tf.gather(rows, order), grad.dense_shape)


def same(grad: Any) -> Any:
    """The gradient, dense, sparse or None, in a new tensor."""
    if isinstance(grad, tf.IndexedSlices):
        return tf.IndexedSlices(tf.identity(grad.values), grad.indices, grad.dense_shape)
    return None if grad is None else tf.identity(grad)


def _with_a_row_more(shape: Any) -> Any:
    rows, *width = shape.as_list()
    return tf.TensorShape([rows + 1, *width])


def _counted(grad: Any, shape: Any) -> Any:
    """A sparse gradient of a variable of ``shape`` with a row of ones behind its last."""
    rows, *width = shape.as_list()
    values = tf.concat([grad.values, tf.ones([1, *width], grad.dtype)], 0)
    indices = tf.concat([grad.indices, tf.constant([rows], grad.indices.dtype)], 0)
    return tf.IndexedSlices(values, indices, tf.constant([rows + 1, *width], tf.int64))
