"""TensorFlow's own synchronous steps refuse what cannot be one process's, and change what the model changes once."""

from typing import Any, Callable

import pytest

from cluster.errors import JobError
from cluster.job import Job
from cluster.model.device_pool import PoolMember
from cluster.runtime.tf_compat import tf
from cluster.task import Task, Train
from cluster.training.graph_builder import Builder


def points(task: Any, args: Any) -> Any:
    return tf.data.Dataset.from_tensors({"x": tf.ones([task.batch_size, 1])}).repeat()


def descent(args: Any) -> Any:
    return tf.train.GradientDescentOptimizer(0.1)


def weights() -> Any:
    return tf.get_variable("w", [1], initializer=tf.ones_initializer(), use_resource=True)


def counter(make: Callable[..., Any] = tf.get_variable) -> Any:
    return make("n", [], initializer=tf.zeros_initializer(), use_resource=True)


def trained_and_assigned(x: Any) -> Any:
    w = weights()
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, w.assign(w * 0.5))
    return (x * w)[:, 0]


def counted(x: Any) -> Any:
    loss = (x * weights())[:, 0]
    n = tf.get_variable("n", [], initializer=tf.zeros_initializer(), trainable=False, use_resource=True)
    with tf.control_dependencies([n.assign_add(1.0)]):
        return tf.identity(loss)


def carried(x: Any) -> Any:
    n = counter(tf.get_local_variable)
    loss = (x * weights())[:, 0] + n
    with tf.control_dependencies([n.assign_add(1.0)]):
        return tf.identity(loss)


def counted_for_the_optimizer(x: Any) -> Any:
    n = tf.get_variable("n", [], initializer=tf.zeros_initializer(), trainable=False, use_resource=True)
    tf.add_to_collection("before", n.assign_add(1.0))
    return (x * weights())[:, 0]


def kept_for_the_optimizer(x: Any) -> Any:
    tf.add_to_collection("before", tf.reduce_mean(x))
    return (x * weights())[:, 0]


class Waiting(tf.train.GradientDescentOptimizer):  # type: ignore[misc]
    """Waits for what is in a collection of the model."""

    def apply_gradients(self, pairs: Any, global_step: Any = None, name: Any = None) -> Any:
        with tf.control_dependencies(tf.get_collection("before")):
            return super().apply_gradients(pairs, global_step)


def build(model: Callable[..., Any], workers: int = 1, towers: int = 1, optimizer: Any = descent) -> None:
    hosts = [f"127.0.0.1:{2 + index}" for index in range(workers)]
    task = Task("worker", 0, {"ps": ["127.0.0.1:1"], "worker": hosts}, batch_size=2)
    train = Train.from_dict({"batch_size": 2, "sync": "stock", "towers": towers})
    Builder(Job(__file__, points, model, optimizer), task, train, {}, [PoolMember(task, ["CPU:0"] * towers)]).build()


def refused(model: Callable[..., Any], workers: int = 1, towers: int = 1, optimizer: Any = descent) -> str:
    with pytest.raises(JobError) as caught:
        build(model, workers, towers, optimizer)
    assert f"{__file__}:" in str(caught.value)
    return str(caught.value)


def test_a_trained_variable_that_the_model_assigns_is_refused() -> None:
    assert "assigns the variable w, which the optimizer trains" in refused(trained_and_assigned)


def test_a_change_that_each_tower_or_each_worker_makes_is_refused() -> None:
    build(counted)
    assert "every tower would change the variable n once" in refused(counted, towers=2)
    assert "every worker would change the variable n once" in refused(counted, workers=2)


def test_a_state_of_the_worker_that_towers_share_is_refused() -> None:
    build(carried, workers=2)
    assert "the local variable n, which all copies of the model share" in refused(carried, towers=2)


def waiting(args: Any) -> Any:
    return Waiting(0.1)


def test_an_optimizer_that_runs_what_the_model_changes_or_has_of_a_batch_is_refused() -> None:
    build(counted, optimizer=waiting)
    for model in (counted_for_the_optimizer, kept_for_the_optimizer):
        assert "apply_gradients waits for this operation of the model" in refused(model, optimizer=waiting)
