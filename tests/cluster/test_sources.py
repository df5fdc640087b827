"""What gradients are taken of: a variable that is cut is whole for the towers, and its gradient is split."""

from typing import Any, Callable, Dict, List

import numpy as np
import pytest

from cluster.job import Job
from cluster.runtime.tf_compat import tf
from cluster.task import Train
from tests.support.training.alone import joined

ROWS, WIDTH = 3000, 128  # 1.5 MiB


def loss(x: Any) -> Any:
    w = tf.get_variable("w", [ROWS, WIDTH], initializer=tf.zeros_initializer())
    b = tf.get_variable("b", [WIDTH], initializer=tf.zeros_initializer())
    return tf.reduce_sum(tf.reduce_sum(w * tf.range(ROWS, dtype=tf.float32)[:, None], 0) + b) * x


def in_a_loop(x: Any) -> Any:
    """The same, of which the variables are asked for first inside a loop."""
    return tf.while_loop(lambda count, _: count < 1, lambda count, total: (count + 1, total + loss(x)), (0, 0 * x))[1]


def trained(model: Callable[[Any], Any]) -> Dict[str, List[Any]]:
    """The values of the pieces on the servers, by the author's name, after one step of two towers with rate 1."""
    data = tf.data.Dataset.from_tensors
    job = Job(
        __file__,
        lambda task, args: data({"x": np.array([1.0, 3.0], np.float32)}).repeat(),
        model,
        lambda args: tf.train.GradientDescentOptimizer(1.0),
    )
    replica, session = joined(job, Train(tower_batch_size=1, towers=2), {})
    replica.stepper.step(session)
    values: Dict[str, List[Any]] = {}
    for each in replica.agreed:
        values.setdefault(each.op.name.split("/")[1], []).append(session.run(each))
    return values


@pytest.mark.parametrize("model", [loss, in_a_loop])
def test_towers_see_a_variable_that_is_cut_as_one_and_its_gradient_is_that_of_the_slices(
    model: Callable[[Any], Any],
) -> None:
    seen: List[Any] = []

    def looking(x: Any) -> Any:
        made = model(x)
        seen.append([(each.op.name, each.shape.as_list()) for each in tf.trainable_variables()])
        return made

    values = trained(looking)
    assert seen == [[("w", [ROWS, WIDTH]), ("b", [WIDTH])]] * 2
    assert len(values["w"]) > 2 and len(values["b"]) == 1
    gradient = -np.concatenate(values["w"])
    np.testing.assert_array_equal(gradient, 2.0 * np.arange(ROWS)[:, None] * np.ones(WIDTH))  # the towers' mean
    np.testing.assert_array_equal(values["b"][0], np.full(WIDTH, -2.0))
