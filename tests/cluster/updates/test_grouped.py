"""Several optimizers, each for variables whose names begin in one way."""

from typing import Any, Dict

import numpy as np
import pytest

from cluster.errors import JobError
from cluster.runtime.tf_compat import tf
from cluster.updates.grouped import Grouped
from cluster.updates.incremental_apply import IncrementalApply, is_elementwise
from cluster.updates.optimizer_gradients import own_gradients

sgd, momentum = tf.train.GradientDescentOptimizer, tf.train.MomentumOptimizer


class Halving(sgd):  # type: ignore[misc, valid-type]
    """Halves its gradients."""

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        pairs = super().compute_gradients(*args, **kwargs)
        return [(None if grad is None else 0.5 * grad, variable) for grad, variable in pairs]


def variables() -> Dict[str, Any]:
    names = ("wide/w", "wider", "deep/w")
    return {name: tf.get_variable(name, [2], initializer=tf.ones_initializer()) for name in names}


def after(optimizer: Any, steps: int = 2) -> Dict[str, float]:
    """The first value of each variable after some steps down the sum of their squares."""
    with tf.Graph().as_default(), tf.Session() as session:
        made = variables()
        loss = tf.add_n([tf.reduce_sum(tf.square(each)) for each in made.values()])
        step = optimizer.minimize(loss)
        session.run(tf.global_variables_initializer())
        for _ in range(steps):
            session.run(step)
        return {name: float(session.run(each)[0]) for name, each in made.items()}


def test_each_variable_is_trained_by_the_longest_beginning_that_fits() -> None:
    found = after(Grouped({"": sgd(0.1), "wide": momentum(0.1, 0.9), "deep/w": sgd(0.0)}))
    assert found["wide/w"] == pytest.approx(after(momentum(0.1, 0.9))["wide/w"])
    assert found["wider"] == pytest.approx(after(sgd(0.1))["wider"])  # "wide" is a scope, not some letters
    assert found["deep/w"] == 1


def test_a_key_that_ends_in_a_slash_is_for_what_lies_beneath() -> None:
    assert after(Grouped({"wide/": sgd(0.0), "": sgd(0.1)}), 1) == pytest.approx(
        {"wide/w": 1, "wider": 0.8, "deep/w": 0.8}
    )
    found = Grouped({"wide": sgd(0.1), "wide/": sgd(0.2)})
    assert [found.prefix(name) for name in ("wide", "wide/w")] == ["wide", "wide/"]


@pytest.mark.parametrize(
    ("key", "hint"),
    [("wyde", " (did you mean 'wide'?)"), ("deep/v", " (did you mean 'deep/w'?)"), ("", None), ("head", "")],
)
def test_a_key_that_no_variable_has_is_refused_with_the_near_name(key: str, hint: Any) -> None:
    with tf.Graph().as_default():
        made = list(variables().values())
        grouped = Grouped({key: sgd(0.1), "wide": sgd(0.1), "wider": sgd(0.1), "deep": sgd(0.1)})
        if hint is None:  # all may have a key of their own, none be left
            own_gradients(grouped, tf.constant(0.0) * made[0][0], made)
            return
        with pytest.raises(JobError) as caught:
            own_gradients(grouped, tf.constant(0.0) * made[0][0], made)
    assert str(caught.value) == (
        f"optimizer: expected a variable for every key, found none for {key!r}{hint}; names"
        " begin with deep, wide, wider; correct the key, or leave it out"
    )


def test_a_part_with_a_way_of_its_own_goes_it() -> None:
    assert after(Grouped({"": Halving(0.1), "wide": sgd(0.1)}), 1) == pytest.approx(
        {"wide/w": 0.8, "wider": 0.9, "deep/w": 0.9}
    )


def test_parts_of_tensorflows_own_way_share_one_backpropagation() -> None:
    with tf.Graph().as_default() as graph:
        made = list(variables().values())
        loss = tf.add_n([tf.reduce_sum(tf.square(each)) for each in made])
        own_gradients(Grouped({"": sgd(0.1), "wide": momentum(0.1, 0.9)}), loss, made)
        assert len({op.name.split("/")[0] for op in graph.get_operations() if op.name.startswith("gradients")}) == 1


def test_it_is_as_elementwise_as_its_parts() -> None:
    assert is_elementwise(Grouped({"": sgd(0.1), "wide": momentum(0.1, 0.9)}))
    assert not is_elementwise(Grouped({"": sgd(0.1), "wide": Halving(0.1)}))


def test_it_updates_some_variables_at_a_time() -> None:
    def pieces() -> Any:
        optimizer = IncrementalApply(Grouped({"": tf.train.AdamOptimizer(0.1), "wide": sgd(0.1)}))
        made = variables()
        updates = [optimizer.update([(2.0 * each, each)]) for each in made.values()]
        with tf.control_dependencies(updates):
            return made, optimizer.finish()

    with tf.Graph().as_default(), tf.Session() as session:
        made, step = pieces()
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(step)
        found = {name: session.run(each)[0] for name, each in made.items()}
    expected = after(Grouped({"": tf.train.AdamOptimizer(0.1), "wide": sgd(0.1)}), 3)
    np.testing.assert_allclose([found[name] for name in made], [expected[name] for name in made], rtol=1e-6)


def test_a_variable_that_is_no_parts_is_refused_by_name() -> None:
    with tf.Graph().as_default(), pytest.raises(
        JobError, match='found none for wider among wide, deep; add one under ""'
    ):
        own_gradients(Grouped({"wide": sgd(0.1), "deep": sgd(0.1)}), tf.constant(0.0), list(variables().values()))
