"""What an author mixes or switches on trains as in one plain process."""

from pathlib import Path
from typing import Any, Dict, Iterator, List

import numpy as np
import pytest

from cluster.job import Job
from cluster.model.device_pool import PoolMember
from cluster.runtime.tf_compat import tf
from cluster.task import Task, Train
from cluster.training.graph_builder import Builder
from tests.support.training.alone import joined, saved, train_alone

STEPS, RATE, CLIP = 3, 0.5, 0.1
X = np.array([[1.0, 2.0], [3.0, 5.0]])


def points(task: Any, args: Any) -> Any:
    return tf.data.Dataset.from_tensors({"x": tf.constant(X[: task.batch_size], tf.float32)}).repeat()


def of_two_types(x: Any) -> Any:
    """Half the square of what a variable of 64 bits and one of 32 make of each example."""
    w = tf.get_variable("w", [2, 1], tf.float64, initializer=tf.ones_initializer())
    b = tf.get_variable("b", [], initializer=tf.zeros_initializer())
    return 0.5 * tf.square(tf.cast(tf.matmul(tf.cast(x, tf.float64), w)[:, 0], tf.float32) + b)


def descent(args: Any) -> Any:
    return tf.train.GradientDescentOptimizer(RATE)


def trained_by_hand() -> Dict[str, Any]:
    """The same variables, by a gradient of both together that is at most ``CLIP`` long."""
    w, b = np.ones(2), 0.0
    for _ in range(STEPS):
        error = X @ w + b
        grads = np.append((error[:, None] * X).mean(0), error.mean())
        moved = RATE * grads * min(1.0, CLIP / np.linalg.norm(grads))
        w, b = w - moved[:2], b - moved[2]
    return {"w": w[:, None], "b": b}


TWO_TYPES = Job(__file__, points, of_two_types, descent)


def test_variables_of_several_types_are_clipped_together(tmp_path: Path) -> None:
    outcome = train_alone(TWO_TYPES, tmp_path, {}, steps=STEPS, batch_size=2, clip_norm=CLIP)
    assert outcome.cause is None
    for name, value in trained_by_hand().items():
        np.testing.assert_allclose(saved(outcome)[name], value, rtol=1e-6)


@pytest.mark.parametrize("settings", [{}, {"sync": "plain"}, {"sync": "stock"}, {"mode": "async"}], ids=str)
def test_variables_of_several_types_have_one_gradient_norm(settings: Dict[str, Any]) -> None:
    task = Task("worker", 0, {"ps": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"]}, batch_size=2)
    train = Train.from_dict({"batch_size": 2, **settings})
    replica = Builder(TWO_TYPES, task, train, {}, [PoolMember(task, ["CPU:0"])]).build()
    with replica.graph.as_default():
        assert replica.stepper.scalars()["gradient_norm"].dtype == tf.float64


def with_branch_and_loop(x: Any) -> Any:
    """Both read a variable."""
    w = tf.get_variable("w", [2, 1], initializer=tf.ones_initializer())
    h = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.matmul(x, w), lambda: -tf.matmul(x, w))
    _, h = tf.while_loop(lambda i, h: i < 2, lambda i, h: (i + 1, tf.tanh(h * w[0])), [0, h])
    return tf.square(h[:, 0])


@pytest.fixture
def switched_off_again() -> Iterator[None]:
    yield
    tf.disable_control_flow_v2()


def losses() -> List[float]:
    settings = Train.from_dict({"batch_size": 2, "towers": 1})
    replica, session = joined(Job(__file__, points, with_branch_and_loop, descent), settings, {})
    return [replica.stepper.step(session)[1] for _ in range(STEPS)]


def test_a_job_that_switches_control_flow_v2_on_trains_the_same(switched_off_again: None) -> None:
    expected = losses()
    tf.enable_control_flow_v2()
    assert losses() == pytest.approx(expected, rel=1e-5)


class Averaging(tf.train.GradientDescentOptimizer):  # type: ignore[misc]
    """Averages what it has updated, as contrib's MovingAverageOptimizer does."""

    def apply_gradients(self, pairs: Any, global_step: Any = None, name: Any = None) -> Any:
        pairs = list(pairs)
        with tf.control_dependencies([super().apply_gradients(pairs, global_step)]):
            return tf.train.ExponentialMovingAverage(0.5).apply([variable for _, variable in pairs])


def averaged_by_itself(x: Any) -> Any:
    w = tf.get_variable("w", [2, 1], initializer=tf.ones_initializer())
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.train.ExponentialMovingAverage(0.5).apply([w]))
    return tf.matmul(x, w)[:, 0]


@pytest.mark.parametrize("settings", [{"batch_size": 2}, {"batch_size": 1, "accumulate": 2}], ids=str)
def test_a_model_and_its_optimizer_that_average_one_variable_have_an_average_each(
    settings: Dict[str, Any], tmp_path: Path
) -> None:
    job = Job(__file__, points, averaged_by_itself, lambda args: Averaging(RATE))
    outcome = train_alone(job, tmp_path, {}, steps=STEPS, **settings)
    w = theirs = own = np.ones(2)
    for _ in range(STEPS):
        theirs = 0.5 * theirs + 0.5 * w
        w = w - RATE * X.mean(0)
        own = 0.5 * own + 0.5 * w
    values = {name: value[:, 0] for name, value in saved(outcome).items() if name.startswith("w")}
    expected = {"w": w, "w/ExponentialMovingAverage": theirs, "w/ExponentialMovingAverage_1": own}
    assert values.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(values[name], value, rtol=1e-6)


class Skipping(tf.train.GradientDescentOptimizer):  # type: ignore[misc]
    """Leaves out, and does not count, a step whose gradients are not finite."""

    def apply_gradients(self, pairs: Any, global_step: Any = None, name: Any = None) -> Any:
        pairs = list(pairs)
        finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(grad)) for grad, _ in pairs])
        return tf.cond(finite, lambda: super(Skipping, self).apply_gradients(pairs, global_step), tf.no_op)


@pytest.mark.parametrize("optimizer", [Skipping, Averaging])
def test_a_worker_logs_that_a_step_counts_which_the_optimizer_may_leave_out(
    optimizer: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    task = Task("worker", 0, {"ps": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"]}, batch_size=2)
    job = Job(__file__, points, averaged_by_itself, lambda args: optimizer(RATE))
    Builder(job, task, Train.from_dict({"batch_size": 2}), {}, [PoolMember(task, ["CPU:0"])]).build()
    assert ("skipped steps count too" in capsys.readouterr().out) == (optimizer is Skipping)
