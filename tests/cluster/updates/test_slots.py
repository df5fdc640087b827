"""What an optimizer keeps beside a variable is as TensorFlow's own, in fewer operations."""

from typing import Any, Callable, Dict, List

import numpy as np
import pytest

from cluster.runtime.tf_compat import tf
from cluster.updates.incremental_apply import IncrementalApply

Update = Callable[[Any, List[Any]], Any]  # makes of an optimizer and its pairs the operation of a step
OPTIMIZERS: Dict[str, Callable[[], Any]] = {
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.1),
}


def variables() -> List[Any]:
    """A whole one, a scalar, and rows 2 and 3 of one of six."""
    shapes: Dict[str, List[int]] = {"whole": [2, 3], "scalar": [], "part": [2, 3], "same/name": [2, 3]}
    with tf.device("/job:localhost/device:CPU:0"):
        made = [tf.get_variable(name, shape, use_resource=False) for name, shape in shapes.items()]
    made[2]._set_save_slice_info(tf.Variable.SaveSliceInfo("all", [6, 3], [2, 0], [2, 3]))
    return made


def kept(optimizer: Any, update: Update) -> Dict[str, Any]:
    """What is known of each variable that the optimizer made: shape, type, place, part, first value."""
    with tf.Graph().as_default(), tf.Session() as session:
        pairs = [(variable * 1.0, variable) for variable in variables()]
        update(optimizer, pairs)
        found = {}
        for each in optimizer.variables():
            info = each._get_save_slice_info()
            session.run(each.initializer)
            part = info and (info.full_name, info.full_shape, info.var_offset, info.var_shape)
            facts = (each.shape.as_list(), each.dtype, each.device, part, each.trainable)
            found[each.op.name] = (facts, each in tf.global_variables(), session.run(each).tolist())
        return found


def stock(optimizer: Any, pairs: List[Any]) -> Any:
    return optimizer.apply_gradients(pairs)


def in_pieces(optimizer: Any, pairs: List[Any]) -> Any:
    pieces = IncrementalApply(optimizer)
    for pair in pairs:
        pieces.update([pair])
    return pieces.finish()


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_names_places_parts_and_first_values_are_tensorflows(name: str) -> None:
    ours, theirs = (kept(OPTIMIZERS[name](), update) for update in (in_pieces, stock))
    assert ours == theirs and len(ours) >= 4


def test_two_optimizers_do_not_share_what_they_keep() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        (variable, *_) = variables()
        both = [tf.train.MomentumOptimizer(0.1, 0.9), tf.train.MomentumOptimizer(0.2, 0.9)]
        steps = [in_pieces(each, [(tf.ones([2, 3]), variable)]) for each in both]
        session.run(tf.global_variables_initializer())
        session.run(steps[0])
        first, second = (session.run(each.get_slot(variable, "momentum")) for each in both)
    np.testing.assert_array_equal(first, np.ones([2, 3]))
    np.testing.assert_array_equal(second, np.zeros([2, 3]))


def test_a_slot_is_two_operations_and_its_zeros_are_made_once_for_a_shape() -> None:
    def operations(number: int) -> int:
        with tf.Graph().as_default() as graph:
            made = [tf.get_variable(f"v{index}", [2, 3], use_resource=False) for index in range(number)]
            gradient = tf.ones([2, 3])
            before = len(graph.get_operations())
            in_pieces(tf.train.MomentumOptimizer(0.1, 0.9), [(gradient, variable) for variable in made])
            return len(graph.get_operations()) - before

    assert operations(5) - operations(4) == 3  # and its update
