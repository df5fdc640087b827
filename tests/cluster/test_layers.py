"""Layers for jobs: batch normalisation keeps the averages that an evaluation uses, moved once a step."""

from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest

from cluster.job import Job
from cluster.layers import batch_norm, convolution, dense
from cluster.model.device_pool import PoolMember
from cluster.model.model_state import with_updates
from cluster.runtime.tf_compat import tf
from cluster.task import Task, Train
from cluster.towers import tower_outputs
from cluster.training.graph_builder import Builder
from cluster.variables.uses import ancestors, writes
from tests.support.training.alone import saved, train_alone

X = np.random.RandomState(0).normal(3.0, 2.0, [8, 4]).astype(np.float32)


def test_dense_and_convolution_compute_what_they_say() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        out = dense("dense", tf.constant(X), 3), convolution("conv", tf.ones([1, 4, 4, 2]), 5, stride=2)
        session.run(tf.global_variables_initializer())
        values = {variable.op.name: session.run(variable) for variable in tf.global_variables()}
        found = session.run(out)
    np.testing.assert_allclose(found[0], X @ values["dense/weights"], rtol=1e-5, atol=1e-5)
    assert found[1].shape == (1, 2, 2, 5)
    np.testing.assert_allclose(found[1][0, 0, 0], values["conv/kernel"].sum((0, 1, 2)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [[8, 4], [2, 2, 2, 4]])
def test_batch_norm_normalises_by_the_batch_in_training(shape: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        y = batch_norm("bn", tf.constant(X.reshape(shape)), training=True)
        session.run(tf.global_variables_initializer())
        expected = (X - X.mean(0)) / np.sqrt(X.var(0) + 1e-3)
        np.testing.assert_allclose(session.run(y).reshape(8, 4), expected, atol=1e-4)


def averages(session: Any) -> Dict[str, Any]:
    return {v.op.name: session.run(v) for v in tf.global_variables() if v not in tf.trainable_variables()}


def model(x: Any, training: bool = True) -> Any:
    return batch_norm("bn", x, training)[:, 0]


def test_only_the_first_tower_of_the_chief_moves_the_averages_once_a_step() -> None:
    changing = {index: moving(index) for index in (0, 1)}
    assert {name: [op.split("/")[0] for op in ops] for name, ops in changing[0].items()} == {
        "bn/mean": ["tower_0"],
        "bn/variance": ["tower_0"],
    }
    assert changing[1] == {"bn/mean": [], "bn/variance": []}


def moving(index: int) -> Dict[str, List[str]]:
    """The operations of a worker's step that change each average, of two towers and an evaluation."""

    def inputs(task: Task, args: Dict[str, Any]) -> Any:
        return tf.data.Dataset.from_tensors({"x": X}).repeat()

    task = Task("worker", index, {"ps": ["a:1"], "worker": ["b:1", "c:1"]}, batch_size=len(X))
    job = Job(__file__, inputs, model, lambda args: tf.train.GradientDescentOptimizer(0.1), inputs)
    pool = [PoolMember(task, ["CPU:0", "CPU:1"])]
    replica = Builder(job, task, Train(tower_batch_size=len(X) // 2, towers=2), {}, pool).build()
    stepper: Any = replica.stepper
    with replica.graph.as_default():
        step = ancestors([stepper._loss, stepper._token])
        averages = [each for each in tf.global_variables() if each.op.name in ("bn/mean", "bn/variance")]
        return {each.op.name: [op.name for op in writes(each) if op in step] for each in averages}


def test_a_run_moves_the_averages_by_the_first_towers_part_of_every_batch(tmp_path: Path) -> None:
    batches = np.random.RandomState(1).normal(size=[5, 8, 2]).astype(np.float32)

    def inputs(task: Task, args: Dict[str, Any]) -> Any:
        return tf.data.Dataset.from_tensor_slices({"x": batches})

    job = Job(__file__, inputs, model, lambda args: tf.train.GradientDescentOptimizer(0.1))
    outcome = train_alone(job, tmp_path, {}, steps=5, batch_size=4, towers=2)
    assert outcome.succeeded, outcome
    mean, variance = np.zeros(2), np.ones(2)
    for batch in batches:
        mean = 0.9 * mean + 0.1 * batch[:4].mean(0)
        variance = 0.9 * variance + 0.1 * batch[:4].var(0, ddof=1)
    np.testing.assert_allclose(saved(outcome)["bn/mean"], mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(saved(outcome)["bn/variance"], variance, rtol=1e-4)


def test_an_evaluation_uses_the_averages_and_leaves_them() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        y = batch_norm("bn", tf.constant(X), training=False)
        assert tf.get_collection(tf.GraphKeys.UPDATE_OPS) == []
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(y), X / np.sqrt(1 + 1e-3), rtol=1e-5)


def test_a_batch_that_is_not_finite_leaves_the_averages_as_they_are() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        tower_outputs(model, ["/cpu:0"], {"x": tf.constant(X * [np.nan, 1, 1, 1], tf.float32)})
        session.run(tf.global_variables_initializer())
        session.run(with_updates(tf.constant(0), tf.get_collection(tf.GraphKeys.UPDATE_OPS)))
        mean = averages(session)["bn/mean"]
    assert mean[0] == 0 and np.all(mean[1:] != 0)
