"""Without what keeps copies of a model apart, ``launch verify`` finds the model that trains to another result."""

import contextlib
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Dict

import pytest

from cluster.model import model_graph
from cluster.model.model_graph import ModelGraph
from cluster.model.shares import Parts
from cluster.runtime.tf_compat import tf
from cluster.sharing.graph_collections import Collections
from cluster.updates import imported_update
from cluster.variables.functions import Functions
from tests.cluster.verify.runs import cause, ended
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


def collections_of_all_copies(patch: Any) -> None:
    patch.setattr(Collections, "alone", lambda self: contextlib.nullcontext())
    patch.setattr(model_graph, "refuse_borrowed", lambda *args: None)


def weights_before_the_optimizer(patch: Any) -> None:
    weigh = Parts.weigh

    def weighed(self: Parts, loss: Any, counts: Any = None) -> Any:
        mean, weight = weigh(self, loss, counts)
        return mean * (1.0 if weight is None else weight), None

    patch.setattr(Parts, "weigh", weighed)


def updates_by_a_name(patch: Any) -> None:
    sum_of = ModelGraph._sum_of

    def named(self: ModelGraph, *args: Any) -> Any:
        found = sum_of(self, *args)
        self.updates = [each for each in self.updates if each.name.startswith("tower_0/")]
        return found

    patch.setattr(ModelGraph, "_sum_of", named)


def functions_unread(patch: Any) -> None:
    patch.setattr(Functions, "change", lambda self, op, index: False)


def step_before_it_counts(patch: Any) -> None:
    patch.setattr(imported_update, "applied", lambda optimizer, pairs, step: optimizer.apply_gradients(pairs))


CASES = {
    "it looks like a term that is counted 1.5 times": Case(collections_of_all_copies, decayed_by_hand),
    "servers' decayed differs from plain TensorFlow in 3 of 3 elements": Case(
        weights_before_the_optimizer, decayed_by_argument, lambda args: Decaying(0.1)
    ),
    "it looks like a change that is counted 0 times (updates by a name)": Case(
        updates_by_a_name, counted_without_a_scope
    ),
    "it looks like a change that is counted 0 times (functions)": Case(functions_unread, counted_in_a_function),
    "it looks like a step that is read at another time": Case(
        step_before_it_counts, optimizer=lambda args: Numbering(0.1)
    ),
}


@pytest.mark.parametrize("kind", CASES)
def test_a_mend_that_is_taken_out_is_found_by_the_model_that_it_is_for(
    kind: str, tmp_path: Path, monkeypatch: Any
) -> None:
    CASES[kind].without(monkeypatch)
    text = cause(ended(tmp_path, {}, job=CASES[kind].job, towers=2, steps=2))
    assert " differs from plain TensorFlow in " in text and kind.split(" (")[0] in text, text
