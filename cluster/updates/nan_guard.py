"""Handle a loss or gradient that is not a finite number, before anything is sent.

The sum of a gradient's elements, computed on the gradient's device, decides: the sum is finite only if every element is
finite. One pass over a gradient costs little compared with the computation of the gradient.
"""

import re
from typing import Any, List, Mapping, Optional, Tuple

from cluster.runtime.gradients import map_values, values_of
from cluster.runtime.tf_compat import tf

NamedGradients = List[Tuple[Any, str]]  # each with the name of its variable; None without a gradient
NOT_FINITE = "is not a finite number"  # TensorFlow puts these words into its error, where ``reason`` finds them
_FOUND = re.compile(rf"the (?:loss|gradient of \S+|new value of \S+) {NOT_FINITE}")


def guard(loss: Any, grads: Mapping[str, Any], on_nan: str, scales: bool) -> Tuple[Any, NamedGradients]:
    """Return the loss, and (gradient, name) of each variable, guarded as ``on_nan`` (``train.on_nan``) requires.

    Args:
      grads: the gradients by the names of their variables.
      scales: whether the optimizer multiplies the loss: then the optimizer itself handles gradients that are too large.
    """
    named = [(grad, name) for name, grad in grads.items()]
    if scales:
        return loss, named
    return (stop_unless_finite if on_nan == "stop" else ignore_unless_finite)(loss, named)


def stop_unless_finite(loss: Any, grads: NamedGradients) -> Tuple[Any, NamedGradients]:
    """Return the same loss and gradients, which raise an error unless they are finite.

    The error is a ``tf.errors.InvalidArgumentError``. The loss is checked first; each gradient is then checked by
    itself, so that one gradient can be sent while others are still computed. ``reason`` returns the part of the error
    that names the cause.
    """
    loss = tf.debugging.check_numerics(loss, f"the loss {NOT_FINITE}")
    return loss, [(_checked(loss, grad, name), name) for grad, name in grads]


def ignore_unless_finite(loss: Any, grads: NamedGradients) -> Tuple[Any, NamedGradients]:
    """Return the same loss and gradients, with all gradients zero unless all are finite.

    The loss is NaN in that case. So a worker with such numbers adds nothing to the step, and its loss shows the
    failure.
    """
    sums = [_total(grad) for grad, _ in grads if grad is not None]
    finite = tf.reduce_all(tf.math.is_finite(tf.stack([tf.cast(loss, tf.float32), *sums])))
    kept = [(map_values(grad, lambda values: _where(finite, values, 0.0)), name) for grad, name in grads]
    return _where(finite, loss, float("nan")), kept


def reason(error: Exception) -> Optional[str]:
    """Return the part of an error that names the value that was not finite.

    An example is ``the gradient of hidden/weights is not a finite number``. The result is None for another error.
    """
    found = _FOUND.search(str(error))
    return found.group(0) if found else None


def _checked(loss: Any, grad: Any, name: str) -> Any:
    if grad is None:
        return None
    with tf.control_dependencies([loss]):  # a loss that is not finite is the cause, and fails first
        total = tf.debugging.check_numerics(_total(grad), f"the gradient of {name} {NOT_FINITE}")
    with tf.control_dependencies([total]):
        return map_values(grad, tf.identity)


def _total(grad: Any) -> Any:
    values = values_of(grad)
    with tf.device(values.device):
        return tf.reduce_sum(tf.cast(values, tf.float32))


def _where(condition: Any, values: Any, otherwise: float) -> Any:
    with tf.device(values.device):
        return tf.where_v2(condition, values, tf.constant(otherwise, values.dtype))
