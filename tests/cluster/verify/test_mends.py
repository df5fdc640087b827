"""Without what keeps copies of a model apart, ``launch verify`` finds the model that trains to another result."""

from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Dict

import pytest

from cluster.runtime.tf_compat import tf
from tests.cluster.verify.runs import cause, ended
from tests.differential.constructions import mends
from tests.support.training.jobs import verified

TERMS, UPDATES = tf.GraphKeys.REGULARIZATION_LOSSES, tf.GraphKeys.UPDATE_OPS
Args = Dict[str, Any]
Patch = Callable[[Any], None]


class Case:
    """A model, or an optimizer, and the mend without which it trains to another result."""

    def __init__(self, without: Patch, model: Any = verified.model, optimizer: Any = verified.optimizer):
        self.without, self.job = without, ModuleType("job")
        vars(self.job).update(vars(verified), model=model, optimizer=optimizer)


def decayed_by_hand(x: Any, ids: Any, y: Any, args: Args) -> Any:
    loss = verified.model(x, ids, y, args)
    tf.add_to_collection(TERMS, 0.05 * tf.add_n([tf.nn.l2_loss(each) for each in tf.trainable_variables()]))
    return loss + tf.add_n(tf.get_collection(TERMS))


def decayed_by_argument(x: Any, ids: Any, y: Any, args: Args) -> Any:
    first = tf.constant_initializer([1.0, 2.0, 3.0])  # whose decay is no multiple of the other gradient
    decay = tf.get_variable("decayed", [3], regularizer=lambda it: 0.05 * tf.nn.l2_loss(it), initializer=first)
    return verified.model(x, ids, y, args) + tf.reduce_sum(decay)


def counted_without_a_scope(x: Any, ids: Any, y: Any, args: Args) -> Any:
    with tf.name_scope(None):
        tf.add_to_collection(UPDATES, _counter().assign_add(1.0))
    return verified.model(x, ids, y, args)


def counted_in_a_function(x: Any, ids: Any, y: Any, args: Args) -> Any:
    n = _counter()
    tf.add_to_collection(UPDATES, tf.function(lambda: n.assign_add(1.0), autograph=False)())
    return verified.model(x, ids, y, args)


def _counter() -> Any:
    return tf.get_variable("n", [], initializer=tf.zeros_initializer(), trainable=False, use_resource=True)


class Decaying(tf.train.GradientDescentOptimizer):  # type: ignore[misc]
    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        return super().compute_gradients(loss + tf.losses.get_regularization_loss(), *args, **kwargs)


class Numbering(tf.train.GradientDescentOptimizer):  # type: ignore[misc]
    """Keeps the number of the step that it has counted."""

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Any = None) -> Any:
        number = tf.get_variable("number", [], tf.int64, tf.zeros_initializer(), trainable=False)
        with tf.control_dependencies([super().apply_gradients(grads_and_vars, global_step, name)]):
            return number.assign(tf.train.get_global_step().read_value()).op


def with_a_rate(x: Any, ids: Any, y: Any, args: Args) -> Any:
    tf.add_to_collection(UPDATES, _rate().assign(_rate() * 0.5))
    return verified.model(x, ids, y, args)


def _rate() -> Any:
    with tf.variable_scope("schedule", reuse=tf.AUTO_REUSE):
        first = tf.constant_initializer(0.1)
        return tf.get_variable("rate", [], initializer=first, trainable=False, use_resource=True)


CASES = {
    "it looks like a term that is counted 1.5 times": Case(mends.collections_of_all_copies, decayed_by_hand),
    "servers' decayed differs from plain TensorFlow in 3 of 3 elements": Case(
        mends.weights_before_the_optimizer, decayed_by_argument, lambda args: Decaying(0.1)
    ),
    "it looks like a change that is counted 0 times (updates by a name)": Case(
        mends.updates_by_a_name, counted_without_a_scope
    ),
    "it looks like a change that is counted 0 times (functions)": Case(mends.functions_unread, counted_in_a_function),
    "it looks like a step that is read at another time": Case(
        mends.step_before_it_counts, optimizer=lambda args: Numbering(0.1)
    ),
    "it looks like a race: the optimizer reads schedule/rate": Case(
        mends.rates_at_any_time, with_a_rate, lambda args: tf.train.GradientDescentOptimizer(_rate())
    ),
}


@pytest.mark.parametrize("kind", CASES)
def test_a_mend_that_is_taken_out_is_found_by_the_model_that_it_is_for(
    kind: str, tmp_path: Path, monkeypatch: Any
) -> None:
    CASES[kind].without(monkeypatch.setattr)
    text = cause(ended(tmp_path, {}, job=CASES[kind].job, towers=2, steps=2))
    assert " differs from plain TensorFlow in " in text and kind.split(" (")[0] in text, text
