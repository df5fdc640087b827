"""Find whether an optimizer's ``minimize`` only hands on what it gets.

Nobody calls ``minimize`` here, but its two halves. One that only hands its arguments on to TensorFlow's own, as that of
every optimizer with decoupled weight decay does, may be left out. So it is called once, with TensorFlow's own replaced
by a method that looks at what arrives.
"""

import inspect
from typing import Any, Callable, Dict, List

from cluster.runtime.tf_compat import tf
from cluster.updates.replaced import in_place_of
from cluster.variables.uses import ops_of

_OWN = tf.train.Optimizer.minimize
_SIGNATURE = inspect.signature(_OWN)
_PLAIN = (type(None), bool, int, float, str)


class _Given:
    """An argument of which nothing can be made."""


def hands_on(optimizer: Any) -> bool:
    """Return whether ``optimizer.minimize`` does nothing but calling TensorFlow's own with the same arguments.

    What it keeps of its other parameters' defaults stays with the optimizer, as after a call of the author's.
    """
    loss, variable, step, result = _Given(), _Given(), _Given(), _Given()
    arrived: List[Dict[str, Any]] = []

    def own(*args: Any, **kwargs: Any) -> Any:
        arrived.append({**_arguments(*args, **kwargs), "waits": _waits()})
        return result

    before, number = dict(vars(optimizer)), _operations()
    with in_place_of("minimize", own):
        returned = _tried(lambda: optimizer.minimize(loss, global_step=step, var_list=[variable]))
    expected = {**_arguments(optimizer, loss, global_step=step, var_list=[variable]), "waits": []}
    makes_nothing = _operations() == number + len(arrived)
    return returned is result and arrived == [expected] and makes_nothing and _keeps_nothing(optimizer, before)


def _arguments(*args: Any, **kwargs: Any) -> Dict[str, Any]:
    bound = _SIGNATURE.bind(*args, **kwargs)
    bound.apply_defaults()
    return dict(bound.arguments)


def _waits() -> List[Any]:
    """Return what the step would wait for, the model's own updates left out: a step waits for these in any case."""
    updates = [op for each in tf.get_collection(tf.GraphKeys.UPDATE_OPS) for op in ops_of(each)]
    return [op for op in tf.no_op().control_inputs if op not in updates]


def _operations() -> int:
    return len(tf.get_default_graph().get_operations())


def _tried(call: Callable[[], Any]) -> Any:
    """Return what a call returns; None if it fails, as it does when it uses an argument."""
    try:
        return call()
    except Exception:
        return None


def _keeps_nothing(optimizer: Any, before: Dict[str, Any]) -> bool:
    """Return whether all that an optimizer has got as attributes are numbers, words and the like."""
    changed = [value for name, value in vars(optimizer).items() if before.get(name, _Given) is not value]
    return all(isinstance(value, _PLAIN) for value in changed)
