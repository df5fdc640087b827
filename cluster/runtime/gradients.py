"""Small functions on gradients: dense tensors, rows of a variable (``IndexedSlices``), or None."""

from typing import Any, Callable, Dict, List, Sequence, Tuple

from cluster.runtime.tf_compat import tf


class MergedRows(tf.IndexedSlices):  # type: ignore[misc]
    """A sparse gradient whose rows are in order, each of them once."""


def merge_rows(grad: Any) -> Any:
    """Return the same sparse gradient with its rows in order, each of them once."""
    if isinstance(grad, MergedRows):
        return grad
    rows, where = tf.unique(grad.indices)
    values = tf.math.unsorted_segment_sum(grad.values, where, tf.size(rows))
    order = tf.argsort(rows)
    return MergedRows(tf.gather(values, order), tf.gather(rows, order), grad.dense_shape)


def values_of(grad: Any) -> Any:
    """Return the tensor of a dense gradient, or the values of a sparse gradient."""
    return grad.values if isinstance(grad, tf.IndexedSlices) else grad


def map_values(grad: Any, change: Callable[[Any], Any]) -> Any:
    """Return ``grad``, dense, sparse or None, with its values changed by the function ``change``."""
    if isinstance(grad, tf.IndexedSlices):
        return tf.IndexedSlices(change(grad.values), grad.indices, grad.dense_shape)
    return None if grad is None else change(grad)


def copy_gradient(grad: Any) -> Any:
    """Return the gradient, dense, sparse or None, in a new tensor."""
    return map_values(grad, tf.identity)


def gradient_after(done: Any, grad: Any) -> Any:
    """Return the same gradient, on the same device; operations that take it wait for the operation ``done``."""
    with tf.device(values_of(grad).device), tf.control_dependencies([done]):
        return copy_gradient(grad)


def without_rows(grad: Any, is_so: Any) -> Any:
    """Return the gradient, without its rows if it is sparse and ``is_so`` is true."""
    if not isinstance(grad, tf.IndexedSlices):
        return grad
    number = tf.where(is_so, tf.zeros([], tf.int32), tf.shape(grad.values)[0])
    with tf.device(grad.indices.device):  # where the consumers of the gradient want them
        indices = grad.indices[:number]
    return tf.IndexedSlices(grad.values[:number], indices, grad.dense_shape)


def divide(grad: Any, weight: Any) -> Any:
    """Return ``grad``, dense or sparse, divided by the number ``weight`` on the gradient's device."""
    with tf.device(grad.device):
        return map_values(grad, lambda values: values / tf.cast(weight, values.dtype))


def clip(grads_and_vars: Sequence[Tuple[Any, Any]], clip_norm: Any) -> List[Tuple[Any, Any]]:
    """Return the gradients scaled to a global norm of at most ``clip_norm``; unchanged if that is None."""
    if clip_norm is None:
        return list(grads_and_vars)
    grads = _clipped([grad for grad, _ in grads_and_vars], clip_norm)
    return [(grad, variable) for grad, (_, variable) in zip(grads, grads_and_vars)]


def _clipped(grads: Sequence[Any], clip_norm: Any) -> List[Any]:
    if _suit_tensorflow(grads):
        return list(tf.clip_by_global_norm(grads, clip_norm)[0])
    norm = global_norm(grads)
    scale = clip_norm / tf.maximum(norm, clip_norm) + (norm - norm)  # not a number where the norm is not finite
    return [None if grad is None else _scaled(grad, tf.cast(scale, grad.dtype)) for grad in grads]


def _scaled(grad: Any, scale: Any) -> Any:
    with tf.device(grad.device):
        return map_values(grad, lambda values: values * scale)


def global_norm(grads: Sequence[Any]) -> Any:
    """Return the norm of all these gradients together, a scalar.

    The norm of gradients of several types is a float64.
    """
    if _suit_tensorflow(grads):
        return tf.global_norm(grads)
    return tf.sqrt(tf.add_n([_squares(grad) for grad in grads if grad is not None]))


def _suit_tensorflow(grads: Sequence[Any]) -> bool:
    """Return whether TensorFlow's own norm functions support the gradients, which must be real and of one type."""
    types = {grad.dtype.base_dtype for grad in grads if grad is not None}
    return len(types) < 2 and not any(each.is_complex for each in types)


def _squares(grad: Any) -> Any:
    values = values_of(grad)
    with tf.device(values.device):
        return tf.reduce_sum(tf.square(tf.cast(tf.abs(values), tf.float64)))


def scalars_of(optimizer: Any, gradients: List[Any]) -> Dict[str, Any]:
    """Return, by name, the norm of all these gradients together and, where known, the optimizer's learning rate."""
    norm = global_norm(gradients)
    rate = getattr(optimizer, "_lr", getattr(optimizer, "_learning_rate", None))  # TensorFlow has no public name for it
    rate = rate() if callable(rate) else rate
    return {"gradient_norm": norm, **({} if rate is None else {"learning_rate": tf.convert_to_tensor(rate)})}
