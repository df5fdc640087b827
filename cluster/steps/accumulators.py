"""Collect the workers' gradients of a push on its server: in one shared accumulator, or in one for each worker.

TensorFlow's accumulators drop a gradient whose local step is older than their own step. They add 1 to their own step
each time that gradients are taken.

An accumulator adds gradients in the order of their arrival. With three workers or more, this order changes the last
bits of a sum. ``Separate`` has an accumulator for each worker, and adds the workers' gradients in order, the chief's
first. So the sum has the same bits in every run, which ``launch verify`` needs.
"""

from dataclasses import replace
from functools import reduce
from typing import Any, Dict, Sequence

from cluster.runtime.gradients import merge_rows
from cluster.runtime.tf_compat import tf
from cluster.steps.exchange import Exchange, Push


class Accumulator:
    """A collector of the workers' gradients of one push, on the server of the push.

    A step needs the gradients of ``number`` workers, and the accumulator adds them up. With backup workers
    (``is_exact`` is False) a step may also get more gradients than ``number``. Then the result is the mean of all
    gradients, times ``number``. TensorFlow's accumulator for sparse gradients cannot compute that mean: it divides each
    row by the number of workers that sent *that row*. So sparse gradients get an extra row of ones, and the sum of that
    row is the divisor.

    ``averages``: return the mean of all gradients instead. Then ``number`` is 1, and a second gradient comes only from
    the same worker, which sends its gradient again.

    TensorFlow's accumulator for sparse gradients also expects rows in order and without repetition: the worker merges
    rows before it sends them.
    """

    def __init__(
        self,
        push: Push,
        number: int,
        exchange: Exchange,
        is_exact: bool = True,
        averages: bool = False,
    ):
        self.push, constants = push, exchange.constants
        self._wire, self._is_exact = exchange.wire, is_exact
        self._number = constants.scalar(number, push.device)
        self._one = constants.scalar(1, push.device)
        self._sparse = isinstance(push.grad, tf.IndexedSlices)
        make = tf.SparseConditionalAccumulator if self._sparse else tf.ConditionalAccumulator
        counts = self._sparse and not is_exact
        reduction = "SUM" if (self._sparse or is_exact) and not averages else "MEAN"
        shape = _with_a_row_more(push.shape) if counts else push.shape
        self._sent_shape = shape
        if self._sparse and is_exact:  # rows of embedding tables go by keys of 64 bits
            shape = tf.TensorShape([None, *push.shape[1:]])
        dtype = push.variables[0].dtype.base_dtype
        with tf.device(push.device):
            self._inner = make(dtype, shape=shape, shared_name=f"{push.name}/gradients", reduction_type=reduction)

    def give(self, grad: Any, local_step: Any) -> Any:
        """Make the operation that adds ``grad``, this worker's gradient of step ``local_step``."""
        if not self._sparse:
            with tf.device(self.push.device):
                grad = self._wire.widen(grad) if self.push.bucket else grad
                return self._inner.apply_grad(grad, local_step=local_step)
        merged = merge_rows(grad)  # on the worker, so that each row travels once
        sent = self._wire.narrow_rows(merged if self._is_exact else _counted(merged, self.push.shape))
        with tf.device(self.push.device):
            came = self._wire.widen_rows(sent)
            shape = tf.constant(self._sent_shape.as_list(), tf.int64)  # made here, so that it does not travel
            return self._inner.apply_grad(came.indices, came.values, shape, local_step)

    def take(self) -> Any:
        """Return the step's gradient, which waits for ``number`` gradients and then empties the accumulator."""
        with tf.device(self.push.device):
            if not self._sparse:
                taken = self._inner.take_grad(self._number)
                return taken if self._is_exact else taken * tf.cast(self._number, taken.dtype)
            total = self._inner.take_indexed_slices_grad(self._number)
            shape = tf.constant(self.push.shape.as_list(), tf.int64)
            if self._is_exact:
                return tf.IndexedSlices(total.values, total.indices, shape)
            number = tf.cast(self._number, total.values.dtype)
            return tf.IndexedSlices(number * total.values[:-1] / total.values[-1:], total.indices[:-1], shape)

    def discard(self) -> Any:
        """Make the operation that drops all gradients in the accumulator. It waits if the accumulator is empty."""
        with tf.device(self.push.device):
            if self._sparse:
                return self._inner.take_indexed_slices_grad(self._one).values
            return self._inner.take_grad(self._one)

    def waiting(self) -> Any:
        """Return the number of gradients in the accumulator, an int32 scalar."""
        return self._inner.num_accumulated()

    def set_step(self, step: Any) -> Any:
        """Make the operation that sets the accumulator's step: it then drops gradients older than ``step``."""
        return self._inner.set_global_step(step)


class Separate:
    """A collector of the workers' gradients of one push, with a separate accumulator for each worker.

    A shared accumulator counts gradients, but does not record which worker sent them. A restarted worker does not know
    whether its previous process has sent its gradient. To a separate accumulator, it sends the same gradient again. The
    accumulator takes the mean of both, or drops the second one if the step has already used the first. The server needs
    the memory of one gradient for each worker.

    Args:
      worker: the index of the worker that sends its gradients in this graph.
      receivers: the indices of the workers whose accumulators this graph uses. The chief uses the accumulators of all
        workers, in order; any other worker uses its own.

    ``parts`` has the accumulators of the receivers, in their order.
    """

    def __init__(self, push: Push, worker: int, receivers: Sequence[int], exchange: Exchange):
        self.push, self._worker, self._in_order = push, worker, exchange.in_order
        self._of: Dict[int, Accumulator] = {
            each: Accumulator(replace(push, name=f"{push.name}/of_{each}"), 1, exchange, averages=True)
            for each in receivers
        }
        self.parts = list(self._of.values())

    def give(self, grad: Any, local_step: Any) -> Any:
        """Make the operation that adds ``grad``, this worker's gradient of step ``local_step``."""
        return self._of[self._worker].give(grad, local_step)

    def take(self) -> Any:
        """Return the sum of all workers' gradients, which waits for all of them: ((g0 + g1) + g2) + …."""
        # Like pieces.added, and apart from it on purpose: that verifies what is done here.
        taken = [part.take() for part in self.parts]
        with tf.device(self.push.device):
            if not isinstance(taken[0], tf.IndexedSlices):
                return reduce(tf.add, taken) if self._in_order or len(taken) == 1 else tf.add_n(taken)
            # Parts of a row are added in the order in which they follow each other.
            values, rows = (tf.concat(parts, 0) for parts in zip(*[(each.values, each.indices) for each in taken]))
            return merge_rows(tf.IndexedSlices(values, rows, taken[0].dense_shape))


def _with_a_row_more(shape: Any) -> Any:
    rows, *width = shape.as_list()
    return tf.TensorShape([rows + 1, *width])


def _counted(grad: Any, shape: Any) -> Any:
    """Return a sparse gradient of a variable of ``shape`` with a row of ones behind its last."""
    rows, *width = shape.as_list()
    values = tf.concat([grad.values, tf.ones([1, *width], grad.dtype)], 0)
    indices = tf.concat([grad.indices, tf.constant([rows], grad.indices.dtype)], 0)
    return tf.IndexedSlices(values, indices, tf.constant([rows + 1, *width], tf.int64))
