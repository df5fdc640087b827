"""The gradients that an optimizer computes, on workers and on servers.

An optimizer's ``compute_gradients`` may do something before TensorFlow's own: scale the loss. It may do something
after it: clip, or freeze by name. Each worker must do the first; the second must be done with the mean of all
gradients. So a worker takes what TensorFlow's own returns there (``own_gradients``). On the servers TensorFlow's own
returns the mean, and the optimizer does the rest (``changed_gradients``).
"""

from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from cluster.errors import JobError
from cluster.runtime.tf_compat import tf
from cluster.updates.handed_on import hands_on
from cluster.updates.passed_loss import NotLinear, PassedLoss
from cluster.updates.replaced import in_place_of
from cluster.variables.uses import ancestors

INNER_SCOPE = "apart/"  # of operations that are neither the model's nor the optimizer's
# TensorFlow's, and those of contrib.
_GATHERING = (
    "SyncReplicasOptimizer", "DropStaleGradientOptimizer", "ElasticAverageOptimizer", "ModelAverageOptimizer",
    "AGNOptimizer",
)  # fmt: skip
_OWN = tf.train.Optimizer.compute_gradients


class OwnGradients(NamedTuple):
    """The gradients that TensorFlow's own ``compute_gradients`` returned.

    ``scales``: whether ``compute_gradients`` was given a multiple of the loss.
    """

    pairs: List[Tuple[Any, Any]]
    scales: bool


def refuse_minimize(optimizer: Any) -> None:
    """Refuse an optimizer that does in ``minimize`` what nobody would call here.

    Raises:
      JobError: it has one of its own, which does more than handing its arguments on.
    """
    if type(optimizer).minimize is not tf.train.Optimizer.minimize and not hands_on(optimizer):
        raise JobError(
            f"optimizer {type(optimizer).__name__}: expected compute_gradients and apply_gradients to be all that it"
            f" does, found a minimize of its own{_place(optimizer, 'minimize')}, which is not called; do the same in"
            " these two"
        )


def gathers(optimizer: Any) -> bool:
    """Return whether an optimizer is one of TensorFlow's that make the steps of several workers themselves."""
    return any(each.__name__ in _GATHERING for each in type(optimizer).__mro__)


def own_gradients(
    optimizer: Any, loss: Any, variables: Sequence[Any], weight: Any = None, batch: Iterable[Any] = ()
) -> OwnGradients:
    """Compute the gradients of a loss as ``optimizer`` does, without what it does to them afterwards.

    The optimizer sees the mean loss of one copy of the model. What it passes on is multiplied by that copy's part of a
    step before it is differentiated: so its own terms count once, however many copies there are.

    Args:
      loss: a scalar, the mean over the examples of one copy.
      weight: the copy's part of a step's mean loss, a number or a scalar; None for 1.
      batch: tensors of the batch, on which nothing may depend that the optimizer adds to the loss or multiplies it by.

    Returns:
      A (gradient or None, variable) for each of ``variables``, in their order.

    Raises:
      JobError: the optimizer computes gradients in a way of its own, or of something that is no c · loss + r.
    """
    found: Dict[str, Any] = {}
    scales: List[bool] = []
    judge = PassedLoss(loss, batch)

    def own(self: Any, loss: Any, var_list: Any = None, *args: Any, **kwargs: Any) -> Any:
        scales.append(_judged(optimizer, judge, loss, [*args, *kwargs.values()]))
        pairs = _OWN(self, _weighted(loss, weight), var_list, *args, **kwargs)
        if any(variable.name in found for _, variable in pairs):
            raise JobError(_refused(optimizer, "asks for one variable's gradient more than once"))
        found.update({variable.name: grad for grad, variable in pairs})
        return pairs

    with in_place_of("compute_gradients", own), _one_set_of_variables():
        optimizer.compute_gradients(loss, list(variables), colocate_gradients_with_ops=True)
    if not scales:
        raise JobError(_refused(optimizer, "does not call tf.train.Optimizer.compute_gradients"))
    return OwnGradients([(found.get(each.name), each) for each in variables], any(scales))


def _judged(optimizer: Any, judge: PassedLoss, loss: Any, more: Sequence[Any]) -> bool:
    """Return whether a multiple of the loss is passed on, with ``more`` arguments.

    Raises:
      JobError: something else is.
    """
    try:
        for each in more:
            judge.refuse_varying(each)
        return judge.scales(loss)
    except NotLinear as error:
        raise JobError(
            f"optimizer {type(optimizer).__name__}: expected a compute_gradients that passes on c · loss + r, where"
            f" neither c nor r depends on the loss or on the batch, found one{_place(optimizer)} in which {error};"
            " put such a term into the loss of each example, which model returns"
        ) from error


def _weighted(loss: Any, weight: Any) -> Any:
    """Return a loss times a copy's weight, which costs one scalar.

    Gradients of 16 bits that were multiplied afterwards would lose small numbers.
    """
    if weight is None:
        return loss
    return loss * (tf.cast(weight, loss.dtype) if isinstance(weight, tf.Tensor) else weight)


def _one_set_of_variables() -> Any:
    """Let every call of a ``compute_gradients`` that makes variables find those of the first."""
    return tf.variable_scope(tf.get_variable_scope(), reuse=tf.AUTO_REUSE)


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
    with in_place_of("compute_gradients", own), _one_set_of_variables():
        pairs = list(optimizer.compute_gradients(loss, trained))
    if loss.op in ancestors([grad for grad, _ in pairs]):
        raise JobError(_refused(optimizer, "uses the loss for more than its gradient"))
    return pairs


def _refused(optimizer: Any, what: str) -> str:
    return (
        f"optimizer {type(optimizer).__name__}: expected a compute_gradients that calls TensorFlow's own once for each"
        f" variable, found one{_place(optimizer)} that {what}; change the gradients that super().compute_gradients"
        " returns"
    )


def described(optimizer: Any, method: str) -> str:
    """Return an optimizer's class and the ``file:line`` of one of its methods, for an error."""
    return f"optimizer {type(optimizer).__name__}{_place(optimizer, method)}"


def _place(optimizer: Any, method: str = "compute_gradients") -> str:
    """Return " (file:line)" of an optimizer's method; "" where that is unknown."""
    code = getattr(getattr(optimizer, method), "__code__", None)
    return f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
