"""The gradients that plain TensorFlow computes for an optimizer, as tensors that can be fed, and their values.

The module also clips gradients by their norm, and computes the gradients of terms in a collection.
"""

import contextlib
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from cluster.runtime.tf_compat import tf
from cluster.updates.optimizer_gradients import in_place_of
from cluster.variables.uses import ancestors
from cluster.verify.named_values import wide

GradsAndVars = List[Tuple[Any, Any]]

_OWN = tf.train.Optimizer.compute_gradients


class Rows(NamedTuple):
    """A sparse gradient: ``values`` [rows, …], and the index of each row in the variable: ``indices``, int [rows]."""

    values: Any
    indices: Any


class Noted(NamedTuple):
    """A variable and its gradient, a tensor or ``Rows`` of tensors; other values can be fed for the gradient.

    ``loss`` is the loss that was differentiated.
    """

    grad: Any
    variable: Any
    loss: Any


@contextlib.contextmanager
def noted() -> Iterator[List[Noted]]:
    """Yield a list that collects each gradient that TensorFlow computes for an optimizer inside this context."""
    found: List[Noted] = []

    def compute(self: Any, loss: Any, *args: Any, **kwargs: Any) -> Any:
        pairs = [(_open(grad), variable) for grad, variable in _OWN(self, loss, *args, **kwargs)]
        found.extend(Noted(_tensors(grad), variable, loss) for grad, variable in pairs if grad is not None)
        return pairs

    with in_place_of("compute_gradients", compute):
        yield found


def _open(grad: Any) -> Any:
    """Return the gradient in separate memory: a variable's memory may change before the gradient is used."""
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


def clipped(pairs: GradsAndVars, norm: Optional[float]) -> GradsAndVars:
    """Return ``pairs`` with their gradients scaled down to a global norm of at most ``norm``; None scales nothing."""
    if norm is None:
        return pairs
    grads, _ = tf.clip_by_global_norm([_merged(grad) for grad, _ in pairs], norm)
    return [(grad, variable) for grad, (_, variable) in zip(grads, pairs)]


def _merged(grad: Any) -> Any:
    """Return a gradient in which each row occurs once: the norm of its parts is not that of their sum."""
    if not isinstance(grad, tf.IndexedSlices):
        return grad
    rows, places = tf.unique(grad.indices)
    return tf.IndexedSlices(tf.math.unsorted_segment_sum(grad.values, places, tf.size(rows)), rows, grad.dense_shape)


def terms_of_loss(found: Sequence[Noted]) -> Dict[str, Dict[int, Any]]:
    """Return the gradients of the sum of each collection's loss terms, by the name of the collection.

    The gradients of one collection are a dictionary by the index of the variable in ``found``.
    """
    of_loss = ancestors([each.loss for each in found])
    terms_of: Dict[str, Dict[int, Any]] = {}
    for name in tf.get_default_graph().get_all_collection_keys():
        terms = [each for each in tf.get_collection(name) if _is_term(each, of_loss)]
        if terms:
            of_one_type = [each for each in terms if each.dtype == terms[0].dtype]
            grads = tf.gradients(tf.add_n(of_one_type), [each.variable for each in found])
            terms_of[str(name)] = {at: tf.convert_to_tensor(grad) for at, grad in enumerate(grads) if grad is not None}
    return {name: known for name, known in terms_of.items() if known}


def _is_term(each: Any, of_loss: Any) -> bool:
    return isinstance(each, tf.Tensor) and each.dtype.is_floating and each.shape.ndims == 0 and each.op in of_loss


def feeds(found: Sequence[Noted], values: Sequence[Any]) -> Dict[Any, Any]:
    """Return the feeds that replace the gradients in ``found`` by ``values``."""
    fed: Dict[Any, Any] = {}
    for each, value in zip(found, values):
        fed.update(zip(each.grad, value) if isinstance(value, Rows) else {each.grad: value}.items())
    return fed


def mean(parts: Sequence[Sequence[Any]], weights: Sequence[float]) -> List[Any]:
    """Return the mean, weighted by ``weights``, of the gradients of several parts of a batch.

    Args:
      parts: the gradients of each part, for the same variables. The result concatenates the rows of sparse gradients.
      weights: the weight of each part; their sum need not be 1.
    """
    if len(parts) == 1:
        return list(parts[0])
    shares = [weight / sum(weights) for weight in weights]
    return [_weighted(of_variable, shares) for of_variable in zip(*parts)]


def _weighted(grads: Sequence[Any], shares: Sequence[float]) -> Any:
    if not isinstance(grads[0], Rows):
        return sum(wide(grad) * share for grad, share in zip(grads, shares)).astype(grads[0].dtype)
    rows = np.concatenate([wide(grad.values) * share for grad, share in zip(grads, shares)])
    return Rows(rows.astype(grads[0].values.dtype), np.concatenate([each.indices for each in grads]))


def plus(grads: Sequence[Any], others: Mapping[int, Any], factor: float) -> List[Any]:
    """Return ``grads`` plus ``factor`` times ``others``.

    The keys of ``others`` are indices in ``grads``. A sparse gradient stays unchanged.
    """
    return [
        (wide(grad) + factor * wide(others[at])).astype(grad.dtype)
        if at in others and not isinstance(grad, Rows)
        else grad
        for at, grad in enumerate(grads)
    ]


def times(grads: Sequence[Any], factor: float) -> List[Any]:
    """Return ``grads`` multiplied by ``factor``."""
    return with_values(grads, lambda values: np.asarray(values * factor).astype(values.dtype))


def with_values(grads: Sequence[Any], change: Callable[[Any], Any]) -> List[Any]:
    """Return ``grads`` with their values changed by the function ``change``; sparse gradients keep their rows."""
    return [Rows(change(grad.values), grad.indices) if isinstance(grad, Rows) else change(grad) for grad in grads]
