"""Where gradients of several workers meet: one accumulator per variable, on its server.

TensorFlow's accumulators drop a gradient whose local step is older than theirs, and count
one step further each time that gradients are taken.
"""

from typing import Any

from cluster.engine import tf


class Accumulator:
    """The gradients of one variable; ``number`` workers make a step.

    Dense gradients are averaged by TensorFlow. Its accumulator for sparse ones divides each
    row by the number of workers that sent *that row*, which is not the gradient of the mean
    loss, and expects rows in order and without repetition. So here rows are merged before
    they are sent and summed on the server; every gradient has a row more, of ones, so that
    the sum also has the number of gradients to divide by: with backup workers it varies.
    """

    def __init__(self, grad: Any, variable: Any, number: int):
        self.variable = variable
        self._number = number
        self._sparse = isinstance(grad, tf.IndexedSlices)
        make = tf.SparseConditionalAccumulator if self._sparse else tf.ConditionalAccumulator
        shape = _with_a_row_more(variable.shape) if self._sparse else variable.shape
        reduction = "SUM" if self._sparse else "MEAN"
        shared_name = f"{variable.op.name}/gradients"
        with tf.device(variable.device):
            self._inner = make(grad.dtype, shape=shape, shared_name=shared_name, reduction_type=reduction)

    def give(self, grad: Any, local_step: Any) -> Any:
        """The operation that adds this worker's gradient of step ``local_step``."""
        if not self._sparse:
            with tf.device(self.variable.device):
                return self._inner.apply_grad(grad, local_step=local_step)
        counted = _counted(merge_rows(grad), self.variable.shape)  # on the worker, so that each row travels once
        with tf.device(self.variable.device):
            return self._inner.apply_indexed_slices_grad(counted, local_step=local_step)

    def take(self) -> Any:
        """The mean gradient, once all that make a step are there; leaves the accumulator empty."""
        with tf.device(self.variable.device):
            if not self._sparse:
                return self._inner.take_grad(self._number)
            total = self._inner.take_indexed_slices_grad(self._number)
            shape = tf.constant(self.variable.shape.as_list(), tf.int64)
            return tf.IndexedSlices(total.values[:-1] / total.values[-1:], total.indices[:-1], shape)

    def discard(self) -> Any:
        """The operation that takes what is there; waits for one gradient if there is none."""
        with tf.device(self.variable.device):
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
