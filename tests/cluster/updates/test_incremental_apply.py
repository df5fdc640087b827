"""Variables updated one after the other are as if they had been updated at once."""

from typing import Any, Callable, Dict, List

import numpy as np
import pytest

from cluster.runtime.tf_compat import tf
from cluster.updates.grouped import Grouped
from cluster.updates.incremental_apply import IncrementalApply, is_elementwise

OPTIMIZERS: Dict[str, Callable[[], Any]] = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.1),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1),
}
STEPS = 4


def trained(optimizer: Any, apply: Callable[[Any, List[Any]], Any]) -> Dict[str, Any]:
    """All variables, the optimizer's own too, after some steps."""
    with tf.Graph().as_default(), tf.Session() as session:
        variables = [tf.get_variable(name, initializer=[1.0, 2.0]) for name in "ab"]
        step = apply(optimizer(), [(variable * 0.5 + 1, variable) for variable in variables])
        session.run(tf.global_variables_initializer())
        for _ in range(STEPS):
            session.run(step)
        return {variable.op.name: session.run(variable) for variable in tf.global_variables()}


def in_pieces(optimizer: Any, pairs: List[Any]) -> Any:
    pieces = IncrementalApply(optimizer)
    for pair in pairs:
        pieces.update([pair])
    return pieces.finish()


def in_pieces_then_finished_alone(optimizer: Any, pairs: List[Any]) -> Any:
    """The updates of each step, and what is left of it, as a chief that takes over does it."""
    pieces = IncrementalApply(optimizer)
    with tf.control_dependencies([pieces.update(pairs)]):
        return pieces.finish_alone()


@pytest.mark.parametrize("apply", [in_pieces, in_pieces_then_finished_alone])
@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_the_variables_and_the_optimizers_own_are_those_of_one_update(name: str, apply: Any) -> None:
    whole = trained(OPTIMIZERS[name], lambda optimizer, pairs: optimizer.apply_gradients(pairs))
    found = trained(OPTIMIZERS[name], apply)
    assert set(found) == set(whole)
    for variable in whole:
        np.testing.assert_array_equal(found[variable], whole[variable], variable)


def test_an_optimizer_with_a_way_of_its_own_to_apply_gradients_cannot() -> None:
    class Own(tf.train.GradientDescentOptimizer):  # type: ignore[misc]
        def apply_gradients(self, *args: Any, **kwargs: Any) -> Any:
            return super().apply_gradients(*args, **kwargs)

    assert IncrementalApply.supports(OPTIMIZERS["adam"]())
    assert not IncrementalApply.supports(Own(0.1))


@pytest.mark.parametrize(
    "rate", [lambda it: it, lambda it: it * 0.5, lambda it: lambda: it / 2], ids=["it", "half", "called"]
)
def test_an_optimizer_with_a_rate_that_the_model_changes_is_not_one_that_treats_elements_by_themselves(
    rate: Callable[[Any], Any],
) -> None:
    with tf.Graph().as_default():
        decayed, other = (tf.get_variable(name, [], trainable=False) for name in ("decayed", "other"))
        optimizer = tf.train.MomentumOptimizer(rate(decayed), 0.9)
        for each in (optimizer, Grouped({"": optimizer})):
            assert is_elementwise(each) and is_elementwise(each, [other])
            assert not is_elementwise(each, [other, decayed])
