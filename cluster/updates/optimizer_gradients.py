"""The gradients that an optimizer computes, on workers and on servers.

An optimizer's ``compute_gradients`` may do something before TensorFlow's own: scale the loss. It may do something
after it: clip, or freeze by name. Each worker must do the first; the second must be done with the mean of all
gradients. So a worker takes what TensorFlow's own returns there (``own_gradients``). On the servers TensorFlow's own
returns the mean, and the optimizer does the rest (``changed_gradients``).
"""

import contextlib
import threading
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from cluster.errors import JobError
from cluster.runtime.tf_compat import tf
from cluster.variables.uses import ancestors

INNER_SCOPE = "apart/"  # of operations that are neither the model's nor the optimizer's
_ONE_AT_A_TIME = threading.RLock()  # a class has one method for all threads
_OWN = tf.train.Optimizer.compute_gradients


class OwnGradients(NamedTuple):
    """The gradients that TensorFlow's own ``compute_gradients`` returned.

    ``scales``: whether ``compute_gradients`` was given another loss.
    """

    pairs: List[Tuple[Any, Any]]
    scales: bool


def refuse_minimize(optimizer: Any) -> None:
    """Refuse an optimizer that does in ``minimize`` what nobody would call here.

    Raises:
      JobError: it has one of its own.
    """
    if type(optimizer).minimize is not tf.train.Optimizer.minimize:
        raise JobError(
            f"optimizer {type(optimizer).__name__}: expected compute_gradients and apply_gradients to be all that it"
            " does, found a minimize of its own, which is not called; do the same in these two"
        )


def own_gradients(optimizer: Any, loss: Any, variables: Sequence[Any]) -> OwnGradients:
    """Compute the gradients of a loss as ``optimizer`` does, without what it does to them afterwards.

    Returns:
      A (gradient or None, variable) for each of ``variables``, in their order.

    Raises:
      JobError: the optimizer computes gradients in a way of its own.
    """
    found: Dict[str, Any] = {}
    losses: List[Any] = []

    def own(self: Any, loss: Any, var_list: Any = None, *args: Any, **kwargs: Any) -> Any:
        pairs = _OWN(self, loss, var_list, *args, **kwargs)
        if any(variable.name in found for _, variable in pairs):
            raise JobError(_refused(optimizer, "asks for one variable's gradient more than once"))
        losses.append(loss)
        found.update({variable.name: grad for grad, variable in pairs})
        return pairs

    scope = tf.variable_scope(tf.get_variable_scope(), reuse=tf.AUTO_REUSE)  # one set of variables for all towers
    with _in_place_of_own(own), scope:
        optimizer.compute_gradients(loss, list(variables), colocate_gradients_with_ops=True)
    if not losses:
        raise JobError(_refused(optimizer, "does not call tf.train.Optimizer.compute_gradients"))
    return OwnGradients([(found.get(each.name), each) for each in variables], any(each is not loss for each in losses))


def changed_gradients(optimizer: Any, grads: Mapping[str, Any], variables: Mapping[str, Any]) -> Any:
    """Return the gradients that an optimizer makes of the mean ones before it applies them.

    Args:
      grads: the mean gradients by name.
      variables: by name.

    Returns:
      (gradient, variable) pairs.

    Raises:
      JobError: it uses the loss itself.
    """
    names = {variable.name: name for name, variable in variables.items()}
    trained = [variable for variable in variables.values() if variable.trainable]

    def own(self: Any, loss: Any, var_list: Any = None, *args: Any, **kwargs: Any) -> Any:
        return [(grads[names[each.name]], each) for each in (trained if var_list is None else var_list)]

    with tf.name_scope(INNER_SCOPE):
        loss = tf.placeholder(tf.float32, [])
    with _in_place_of_own(own):
        pairs = list(optimizer.compute_gradients(loss, trained))
    needed = ancestors([grad for grad, _ in pairs])
    if loss.op in needed:
        raise JobError(_refused(optimizer, "uses the loss for more than its gradient"))
    return pairs


def _refused(optimizer: Any, what: str) -> str:
    return (
        f"optimizer {type(optimizer).__name__}: expected a compute_gradients that calls TensorFlow's own once for each"
        f" variable, found one that {what}; change the gradients that super().compute_gradients returns"
    )


@contextlib.contextmanager
def _in_place_of_own(replacement: Callable[..., Any]) -> Iterator[None]:
    with _ONE_AT_A_TIME:
        tf.train.Optimizer.compute_gradients = replacement
        try:
            yield
        finally:
            tf.train.Optimizer.compute_gradients = _OWN
