"""The gradients that an optimizer computes, on workers and on servers.

An optimizer's ``compute_gradients`` may act before TensorFlow's own, and scale the loss. It may also act afterwards:
clip gradients, or freeze variables by name. Each worker must do the first part; the second part needs the mean of all
gradients. So a worker uses only the result of TensorFlow's own method (``own_gradients``). On the servers TensorFlow's
own method returns the mean, and the optimizer does the rest (``changed_gradients``).

This package never calls ``minimize``, but only its two halves, ``compute_gradients`` and ``apply_gradients``. An
optimizer's ``minimize`` may be skipped if it only passes its arguments on to TensorFlow's own, as with decoupled weight
decay. To find out, the package calls it once, with TensorFlow's own replaced by a method that records its arguments.
"""

import contextlib
import inspect
import threading
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from cluster.errors import JobError
from cluster.runtime.tf_compat import tf
from cluster.updates.passed_loss import NotLinear, PassedLoss
from cluster.variables.uses import ancestors, ops_of

_ONE_AT_A_TIME = threading.RLock()  # all threads share the methods of a class


@contextlib.contextmanager
def in_place_of(method: str, replacement: Callable[..., Any]) -> Iterator[None]:
    """Replace the method named ``method`` of ``tf.train.Optimizer`` inside this context.

    Only one thread at a time can be inside, but the calls of all threads reach the replacement.
    """
    with _ONE_AT_A_TIME:
        own = getattr(tf.train.Optimizer, method)
        setattr(tf.train.Optimizer, method, replacement)
        try:
            yield
        finally:
            setattr(tf.train.Optimizer, method, own)


_OWN_MINIMIZE = tf.train.Optimizer.minimize
_SIGNATURE = inspect.signature(_OWN_MINIMIZE)
_PLAIN = (type(None), bool, int, float, str)


class _Given:
    """An argument that supports no operation."""


def hands_on(optimizer: Any) -> bool:
    """Return whether ``optimizer.minimize`` only calls TensorFlow's own with the same arguments.

    To find out, the function calls ``minimize``. Some optimizers then store the defaults of their additional
    parameters. These values stay in the optimizer, as after a call by the author.
    """
    loss, variable, step, result = _Given(), _Given(), _Given(), _Given()
    arrived: List[Dict[str, Any]] = []

    def own(*args: Any, **kwargs: Any) -> Any:
        arrived.append({**arguments_of_minimize(*args, **kwargs), "waits": _waits()})
        return result

    before, number = dict(vars(optimizer)), _operations()
    with in_place_of("minimize", own):
        returned = _tried(lambda: optimizer.minimize(loss, global_step=step, var_list=[variable]))
    expected = {**arguments_of_minimize(optimizer, loss, global_step=step, var_list=[variable]), "waits": []}
    makes_nothing = _operations() == number + len(arrived)
    return returned is result and arrived == [expected] and makes_nothing and _keeps_nothing(optimizer, before)


def arguments_of_minimize(*args: Any, **kwargs: Any) -> Dict[str, Any]:
    """Return all arguments of a call of TensorFlow's own ``minimize``, by name, ``self`` among them."""
    bound = _SIGNATURE.bind(*args, **kwargs)
    bound.apply_defaults()
    return dict(bound.arguments)


def _waits() -> List[Any]:
    """Return the operations for which a step would wait, except the model's own updates, which it always awaits."""
    updates = [op for each in tf.get_collection(tf.GraphKeys.UPDATE_OPS) for op in ops_of(each)]
    return [op for op in tf.no_op().control_inputs if op not in updates]


def _operations() -> int:
    return len(tf.get_default_graph().get_operations())


def _tried(call: Callable[[], Any]) -> Any:
    """Return the result of a call; None if it fails, as it does when it uses an argument."""
    try:
        return call()
    except Exception:
        return None


def _keeps_nothing(optimizer: Any, before: Dict[str, Any]) -> bool:
    """Return whether all new attributes of an optimizer are numbers, texts and the like."""
    changed = [value for name, value in vars(optimizer).items() if before.get(name, _Given) is not value]
    return all(isinstance(value, _PLAIN) for value in changed)


INNER_SCOPE = "apart/"  # of operations that belong neither to the model nor to the optimizer
# TensorFlow's, and those of contrib.
_GATHERING = (
    "SyncReplicasOptimizer", "DropStaleGradientOptimizer", "ElasticAverageOptimizer", "ModelAverageOptimizer",
    "AGNOptimizer",
)  # fmt: skip
_OWN_COMPUTE = tf.train.Optimizer.compute_gradients


class OwnGradients(NamedTuple):
    """The gradients that TensorFlow's own ``compute_gradients`` returned.

    ``scales``: whether ``compute_gradients`` received a multiple of the loss.
    """

    pairs: List[Tuple[Any, Any]]
    scales: bool


def refuse_minimize(optimizer: Any) -> None:
    """Refuse an optimizer whose ``minimize`` does work that would be skipped here.

    Raises:
      JobError: the optimizer has a ``minimize`` of its own, which does more than pass its arguments on.
    """
    if type(optimizer).minimize is not tf.train.Optimizer.minimize and not hands_on(optimizer):
        raise JobError(
            f"optimizer {type(optimizer).__name__}: expected one that works only by compute_gradients and"
            f" apply_gradients, found its own minimize{_place(optimizer, 'minimize')}, which is never called; move the"
            " work of minimize into these two methods"
        )


def gathers(optimizer: Any) -> bool:
    """Return whether ``optimizer`` is of a class of TensorFlow that itself combines the steps of several workers."""
    return any(each.__name__ in _GATHERING for each in type(optimizer).__mro__)


def own_gradients(
    optimizer: Any, loss: Any, variables: Sequence[Any], weight: Any = None, batch: Iterable[Any] = ()
) -> OwnGradients:
    """Compute the gradients of a loss as ``optimizer`` does, without the changes that it makes to them afterwards.

    The optimizer receives the mean loss of one copy of the model, and passes a loss on to TensorFlow's own method. The
    loss passed on is multiplied by ``weight``, and then differentiated. So the optimizer's own terms count once,
    whatever the number of copies.

    Args:
      loss: a scalar, the mean over the examples of one copy.
      weight: the copy's part of a step's mean loss, a number or a scalar; None for 1.
      batch: tensors of the batch. Terms or factors that the optimizer adds to the loss must not depend on them.

    Returns:
      A (gradient or None, variable) for each of ``variables``, in their order.

    Raises:
      JobError: the optimizer computes gradients in a way of its own, or of a value that is not c · loss + r.
    """
    found: Dict[str, Any] = {}
    scales: List[bool] = []
    judge = PassedLoss(loss, batch)

    def own(self: Any, loss: Any, var_list: Any = None, *args: Any, **kwargs: Any) -> Any:
        scales.append(_judged(optimizer, judge, loss, [*args, *kwargs.values()]))
        pairs = _OWN_COMPUTE(self, _weighted(loss, weight), var_list, *args, **kwargs)
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
      JobError: another value is passed on.
    """
    try:
        for each in more:
            judge.refuse_varying(each)
        return judge.scales(loss)
    except NotLinear as error:
        raise JobError(
            f"optimizer {type(optimizer).__name__}{_place(optimizer)}: expected compute_gradients to pass on c · loss"
            f" + r, found that {error}; {error.step} (neither c nor r may depend on the loss or on the batch)"
        ) from error


def _weighted(loss: Any, weight: Any) -> Any:
    """Return a loss times a copy's weight, which costs one scalar.

    Gradients of 16 bits that are multiplied afterwards would lose small numbers.
    """
    if weight is None:
        return loss
    return loss * (tf.cast(weight, loss.dtype) if isinstance(weight, tf.Tensor) else weight)


def _one_set_of_variables() -> Any:
    """Let every call of a ``compute_gradients`` that creates variables reuse those of the first call."""
    return tf.variable_scope(tf.get_variable_scope(), reuse=tf.AUTO_REUSE)


def changed_gradients(optimizer: Any, grads: Mapping[str, Any], variables: Mapping[str, Any]) -> Any:
    """Return the gradients that an optimizer computes from the mean gradients before it applies them.

    Args:
      grads: the mean gradients, by the names of their variables.
      variables: the variables, by the same names.

    Returns:
      (gradient, variable) pairs.

    Raises:
      JobError: the optimizer uses the loss itself.
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
    """Return " (file:line)" of an optimizer's method; "" where the place is unknown."""
    code = getattr(getattr(optimizer, method), "__code__", None)
    return f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
