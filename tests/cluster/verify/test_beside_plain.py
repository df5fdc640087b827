"""A step that differs from plain TensorFlow is found, and named after what was done to it; rounding is not."""

from typing import Any, Callable

import numpy as np
import pytest

from cluster.layers import batch_norm
from cluster.runtime.tf_compat import tf
from tests.cluster.verify.steps import FEATURES, Author, Step, descent, fault

REGULARIZATION, UPDATES = tf.GraphKeys.REGULARIZATION_LOSSES, tf.GraphKeys.UPDATE_OPS


def error_of(x: Any, y: Any) -> Any:
    """The loss of each example."""
    w = tf.get_variable("w", [FEATURES, 5], initializer=tf.random_normal_initializer(seed=1))
    return tf.square(tf.reduce_sum(tf.nn.tanh(x @ w), 1) - tf.cast(y, tf.float32))


def plain(x: Any, y: Any) -> Any:
    return error_of(x, y)


def adam(args: Any) -> Any:
    return tf.train.AdamOptimizer(0.01)


def number(name: str = "n", value: float = 0.0, **more: Any) -> Any:
    """A variable of the model's own."""
    return tf.get_variable(name, [], initializer=tf.constant_initializer(value), trainable=False, **more)


# -- a term, or a gradient, that is counted several times


def regularized(times: float) -> Callable[..., Any]:
    """A decay of the author's own in TensorFlow's collection, which the loss has so many times."""

    def model(x: Any, y: Any) -> Any:
        loss = error_of(x, y)
        tf.add_to_collection(REGULARIZATION, 0.05 * tf.nn.l2_loss(tf.trainable_variables()[0]))
        return loss + times * tf.add_n(tf.get_collection(REGULARIZATION))

    return model


def decaying(times: float) -> Callable[..., Any]:
    """An optimizer that adds the decay by itself, so many times."""

    class Decays(tf.train.GradientDescentOptimizer):  # type: ignore[misc]
        def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
            return super().compute_gradients(loss + times * tf.losses.get_regularization_loss(), *args, **kwargs)

    return lambda args: Decays(0.1)


@pytest.mark.parametrize(("optimizer", "first"), [(descent, "w"), (adam, "w/Adam")], ids=["descent", "adam"])
def test_a_term_that_each_tower_adds_to_those_before_it_is_named_with_its_number(optimizer: Any, first: str) -> None:
    found = fault(Author(regularized(1.0), optimizer), Author(regularized(1.5), optimizer))
    assert f"servers' {first} differs from plain TensorFlow in 15 of 15 elements, by at most " in found.what
    assert str(found.kind).startswith("it looks like a term that is counted 1.5 times") and REGULARIZATION in found.text


def test_a_term_of_the_optimizer_that_each_part_of_a_batch_adds_is_named_with_its_number() -> None:
    author, run = (Author(regularized(0.0), decaying(times)) for times in (1.0, 4.0))
    assert str(fault(author, run).kind).startswith("it looks like a term that is counted 4 times")


def test_a_term_that_was_left_out_is_named() -> None:
    assert str(fault(Author(regularized(1.0)), Author(regularized(0.0))).kind).startswith(
        "it looks like a term that is counted 0 times"
    )


def test_gradients_of_workers_that_are_added_up_are_named_with_their_number() -> None:
    twice = Author(plain, lambda args: tf.train.GradientDescentOptimizer(0.2))
    assert str(fault(Author(plain), twice).kind) == "it looks like gradients that are counted 2 times"


# -- what the model changes by itself


def counting(times: float, inside: bool = False) -> Callable[..., Any]:
    """A counter in UPDATE_OPS, or inside a function there, that moves so many steps at a time."""

    def model(x: Any, y: Any) -> Any:
        n = number(use_resource=True)
        move = tf.function(lambda: n.assign_add(times), autograph=False) if inside else lambda: n.assign_add(times)
        with tf.name_scope(None):
            tf.add_to_collection(UPDATES, move())
        return error_of(x, y)

    return model


@pytest.mark.parametrize("times", [0.0, 2.0])
@pytest.mark.parametrize("inside", [False, True], ids=["operation", "function"])
def test_a_change_that_is_dropped_or_made_by_each_tower_is_named_with_its_number(times: float, inside: bool) -> None:
    found = fault(Author(counting(1.0, inside)), Author(counting(times)))
    assert found.what.startswith("step 1: servers' n differs")
    assert str(found.kind).startswith(f"it looks like a change that is counted {times:.0f} times")


def test_a_rate_that_updates_change_is_named_where_the_optimizer_has_read_another() -> None:
    def rate() -> Any:
        with tf.variable_scope("schedule", reuse=tf.AUTO_REUSE):
            return number("rate", 0.1)

    def model(x: Any, y: Any) -> Any:
        tf.add_to_collection(UPDATES, rate().assign(rate() * 0.7))
        return error_of(x, y)

    author = Author(model, lambda args: tf.train.GradientDescentOptimizer(rate()))
    found = fault(author, author._replace(optimizer=lambda args: tf.train.GradientDescentOptimizer(0.1)))
    assert "it looks like a race: the optimizer reads schedule/rate, which tf.GraphKeys.UPDATE_OPS change" in found.text


def test_a_variable_that_one_part_of_the_batch_updates_differs_by_design() -> None:
    def model(x: Any, y: Any) -> Any:
        code = tf.get_variable("code", [FEATURES], initializer=tf.zeros_initializer(), trainable=False)
        tf.add_to_collection(UPDATES, code.assign_sub(0.1 * (code - tf.reduce_mean(x, 0))))
        return error_of(x, y)

    step = Step(Author(model), by_parts=True)
    assert step.fault() is None
    assert step.beside.result()["differs_by_design/code"] == 1


def test_batch_statistics_are_those_of_each_part_and_hide_no_other_mistake() -> None:
    def model(x: Any, y: Any) -> Any:
        return error_of(batch_norm("norm", x, training=True), y)

    step = Step(Author(model), by_parts=True)
    assert step.fault() is None and step.beside.result()["verified_plain_steps_by_parts"] == 1
    twice = Author(model, lambda args: tf.train.GradientDescentOptimizer(0.2))
    assert str(fault(Author(model), twice, by_parts=True).kind) == "it looks like gradients that are counted 2 times"


# -- the optimizer and the step


class Counts(tf.train.GradientDescentOptimizer):  # type: ignore[misc]
    """Keeps the number of the step that it has ended, or that it has begun with."""

    ended = 1

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Any = None) -> Any:
        with tf.control_dependencies([super().apply_gradients(grads_and_vars, global_step, name)]):
            seen = tf.train.get_global_step().read_value() - (1 - self.ended)
            return number("seen").assign(tf.cast(seen, tf.float32) + 5).op


class CountsTooEarly(Counts):
    ended = 0


class Skips(tf.train.GradientDescentOptimizer):  # type: ignore[misc]
    """Skips its first step, which does not count."""

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Any = None) -> Any:
        return tf.no_op()


def test_a_step_that_the_optimizer_reads_too_early_is_named() -> None:
    found = fault(Author(plain, lambda args: Counts(0.1)), Author(plain, lambda args: CountsTooEarly(0.1)))
    assert found.what.startswith("step 1: servers' seen differs")
    assert str(found.kind).startswith("it looks like a step that is read at another time")


def test_a_step_that_counts_although_the_optimizer_skips_it_is_named() -> None:
    still = Author(plain, lambda args: tf.train.GradientDescentOptimizer(0.0))
    found = fault(Author(plain, lambda args: Skips(0.1)), still)
    assert found.text.startswith("step 1: servers' global_step differs")
    assert "this step adds 1 to the global step, and plain TensorFlow adds 0;" in found.text


# -- examples that depend on each other, and numbers that are never alike


def contrasted(x: Any, y: Any) -> Any:
    """The other examples of a batch are what each is told from."""
    w = tf.get_variable("w", [FEATURES, 2], initializer=tf.random_normal_initializer(seed=1))
    logits = (x @ w) @ tf.transpose(tf.sin(x) @ w)
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.range(tf.shape(x)[0]), logits=logits)


def weighted(x: Any, y: Any) -> Any:
    """A mean by the weights of this batch, for each of its examples."""
    weights = tf.exp(x[:, 0])
    return tf.fill([tf.shape(x)[0]], tf.reduce_sum(weights * error_of(x, y)) / tf.reduce_sum(weights))


@pytest.mark.parametrize(
    ("model", "way"),
    [(contrasted, {}), (weighted, {"towers": 1}), (contrasted, {"workers": 1, "towers": 1, "accumulate": 4})],
    ids=["towers", "workers", "accumulated"],
)
def test_a_model_that_couples_examples_is_named_with_both_losses(model: Any, way: Any) -> None:
    found = fault(Author(model), by_parts=True, **way)
    assert found.what.startswith("step 1: servers' w differs")
    assert (
        str(found.kind).startswith("it looks like a model that couples examples")
        and "(the loss of the whole" in found.text
    )


def test_numbers_of_python_that_each_build_draws_are_named() -> None:
    drawn = iter(range(2, 100))
    found = fault(Author(lambda x, y: error_of(x * float(next(drawn)), y)), Author(plain))
    assert "it looks like random numbers of Python: two builds of the model differ in " in found.text


def test_a_step_that_plain_tensorflow_itself_never_takes_twice_alike_is_named_a_race() -> None:
    drawn = iter(np.arange(2, 1000, dtype=np.float32))

    def model(x: Any, y: Any) -> Any:
        factor = tf.numpy_function(lambda: next(drawn), [], tf.float32)
        factor.set_shape([])
        return error_of(x, y) * factor

    found = fault(Author(model), Author(plain))
    assert "it looks like a race: plain TensorFlow also computes w twice from the same values" in found.text


# -- what is no fault


@pytest.mark.parametrize("by_parts", [False, True], ids=["whole", "parts"])
@pytest.mark.parametrize("optimizer", [descent, adam], ids=["descent", "adam"])
def test_the_rounding_of_parts_is_no_fault_also_where_a_gradient_is_almost_zero(by_parts: bool, optimizer: Any) -> None:
    def model(x: Any, y: Any) -> Any:
        mean = tf.get_variable("mean", [], initializer=tf.zeros_initializer())
        return error_of(x, y) + 1e-3 * tf.square(mean - 1e-7 * x[:, 0])

    step = Step(Author(model, optimizer), by_parts=by_parts, clip_norm=0.1)
    assert step.fault() is None
    assert step.beside.result() == {"verified_plain_steps": 1, "verified_plain_steps_by_parts": 0}


def test_several_optimizers_each_train_the_variables_whose_names_begin_so() -> None:
    def model(x: Any, y: Any) -> Any:
        with tf.variable_scope("a"):
            loss = error_of(x, y)
        return loss + tf.square(tf.get_variable("b", [], initializer=tf.ones_initializer()))

    def frozen(args: Any) -> Any:
        return {"a/": tf.train.GradientDescentOptimizer(0.0), "": tf.train.GradientDescentOptimizer(0.1)}

    assert Step(Author(model, frozen)).fault() is None
    assert "servers' a/w differs" in fault(Author(model, frozen), Author(model)).what


def test_sparse_ragged_and_nested_batches_are_cut_and_joined() -> None:
    def more() -> Any:
        return {
            "ids": tf.SparseTensor([[0, 0], [1, 1], [3, 0]], [1, 2, 3], [4, 2]),
            "words": tf.ragged.constant([[1], [], [2, 0], [3]]),
            "pair": (tf.range(4.0), {"z": tf.ones([4, 2])}),
        }

    def model(x: Any, y: Any, ids: Any, words: Any, pair: Any) -> Any:
        table = tf.get_variable("table", [4, 2], initializer=tf.random_normal_initializer(seed=2))
        rows = tf.nn.safe_embedding_lookup_sparse(table, ids, combiner="sum")
        of_words = tf.reduce_sum(tf.gather(table, words), 1)
        return error_of(x, y) + tf.reduce_sum(rows * pair[1]["z"], 1) * pair[0] + tf.reduce_sum(of_words, 1)

    for by_parts in (False, True):
        step = Step(Author(model), by_parts=by_parts, more=more)
        assert (
            step.fault() is None and step.beside.problem is None and step.beside.result()["verified_plain_steps"] == 1
        )


def test_a_model_that_cannot_take_the_whole_batch_is_not_compared_and_the_reason_is_kept() -> None:
    def model(x: Any, y: Any) -> Any:
        return error_of(tf.reshape(x, [2, FEATURES]), y[:2])

    step = Step(Author(model), Author(lambda x, y: error_of(x[:2], y[:2])))
    assert step.fault() is None and "steps.py" in str(step.beside.problem)


def test_a_variable_that_plain_tensorflow_trains_and_the_servers_lack_is_named() -> None:
    assert "found no w, which" in str(Step(Author(plain), Author(lambda x, y: _without(x))).complaint)


def _without(x: Any) -> Any:
    return x[:, 0] * tf.get_variable("other", [], initializer=tf.ones_initializer())
