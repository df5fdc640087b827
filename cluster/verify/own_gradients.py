"""The gradients that TensorFlow's own ``compute_gradients`` returns to an optimizer, as tensors that can be fed."""

import contextlib
import threading
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence

import numpy as np

from cluster.runtime.tf_compat import tf

_ONE_AT_A_TIME = threading.RLock()  # a class has one method for all threads


class Rows(NamedTuple):
    """A gradient of rows: values [rows, …] and int [rows]."""

    values: Any
    indices: Any


class Noted(NamedTuple):
    """A variable and its gradient, a tensor or ``Rows`` of tensors; other values can be fed for it.

    ``loss`` is what was differentiated.
    """

    grad: Any
    variable: Any
    loss: Any


@contextlib.contextmanager
def noted() -> Iterator[List[Noted]]:
    """Note, inside, each gradient that TensorFlow computes for an optimizer."""
    found: List[Noted] = []
    with _ONE_AT_A_TIME:
        own = tf.train.Optimizer.compute_gradients

        def compute(self: Any, loss: Any, *args: Any, **kwargs: Any) -> Any:
            pairs = [(_open(grad), variable) for grad, variable in own(self, loss, *args, **kwargs)]
            found.extend(Noted(_tensors(grad), variable, loss) for grad, variable in pairs if grad is not None)
            return pairs

        tf.train.Optimizer.compute_gradients = compute
        try:
            yield found
        finally:
            tf.train.Optimizer.compute_gradients = own


def _open(grad: Any) -> Any:
    """Return the same gradient in memory of its own: a variable's memory may change before it is used."""
    if grad is None:
        return None
    if isinstance(grad, tf.IndexedSlices):
        return tf.IndexedSlices(_fed(grad.values, True), _fed(grad.indices, True), grad.dense_shape)
    return _fed(grad)


def _fed(tensor: Any, rows_vary: bool = False) -> Any:
    shape = tensor.shape
    if rows_vary and shape.ndims is not None:
        shape = [None, *shape.as_list()[1:]]
    return tf.placeholder_with_default(tf.raw_ops.DeepCopy(x=tensor), shape)


def _tensors(grad: Any) -> Any:
    return Rows(grad.values, grad.indices) if isinstance(grad, tf.IndexedSlices) else grad


def feeds(found: Sequence[Noted], values: Sequence[Any]) -> Dict[Any, Any]:
    """Return what to feed so that the gradients have these values."""
    fed: Dict[Any, Any] = {}
    for each, value in zip(found, values):
        fed.update(zip(each.grad, value) if isinstance(value, Rows) else {each.grad: value}.items())
    return fed


def mean(parts: Sequence[Sequence[Any]], weights: Sequence[float]) -> List[Any]:
    """Return the mean of gradients of several parts of a batch: those of rows, one part after the other."""
    if len(parts) == 1:
        return list(parts[0])
    shares = [weight / sum(weights) for weight in weights]
    return [_weighted(of_variable, shares) for of_variable in zip(*parts)]


def _weighted(grads: Sequence[Any], shares: Sequence[float]) -> Any:
    if not isinstance(grads[0], Rows):
        return sum(_wide(grad) * share for grad, share in zip(grads, shares)).astype(grads[0].dtype)
    rows = np.concatenate([_wide(grad.values) * share for grad, share in zip(grads, shares)])
    return Rows(rows.astype(grads[0].values.dtype), np.concatenate([each.indices for each in grads]))


def plus(grads: Sequence[Any], others: Sequence[Any], factor: float) -> List[Any]:
    """Return gradients to which others, dense or None, are added so many times; one of rows stays as it is."""
    return [
        grad if other is None or isinstance(grad, Rows) else (_wide(grad) + factor * _wide(other)).astype(grad.dtype)
        for grad, other in zip(grads, others)
    ]


def times(grads: Sequence[Any], factor: float) -> List[Any]:
    """Return gradients that are multiplied by a number."""
    return [
        Rows((grad.values * factor).astype(grad.values.dtype), grad.indices)
        if isinstance(grad, Rows)
        else np.asarray(grad * factor).astype(grad.dtype)
        for grad in grads
    ]


def _wide(value: Any) -> Any:
    return np.asarray(value).astype(np.complex128 if np.asarray(value).dtype.kind == "c" else np.float64)
