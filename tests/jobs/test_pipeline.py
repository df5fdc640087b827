"""A model whose layers lie on several devices computes what it computes on one."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Iterator, List

import numpy as np
import pytest

from cluster.job import Job
from cluster.model.device_pool import as_client, own_pool
from cluster.runtime.tf_compat import tf
from cluster.spec import load
from cluster.task import Task, Train
from cluster.towers import make_parallel
from cluster.training.graph_builder import Builder
from jobs import digits, pipeline
from tests.support.training.threads import ThreadedRun

ARGS = {"layers": 4, "width": 16}
CPUS = [f"/device:CPU:{index}" for index in range(4)]


@pytest.fixture
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(0)
        yield graph


def loss(x: Any, y: Any) -> Any:
    return pipeline.model(x, y, ARGS)[0]


def with_gradients(devices: Any) -> List[Any]:
    """The loss per example, and the gradient of its mean for every variable."""
    examples = {name: value[:12] for name, value in digits.examples(held_out=True).items()}
    batch = {name: tf.constant(value) for name, value in examples.items()}
    made = make_parallel(loss, devices, **batch)
    return [made, *tf.gradients(tf.reduce_mean(made), tf.trainable_variables(), colocate_gradients_with_ops=True)]


@pytest.mark.parametrize("devices", [[CPUS[:1]], [CPUS[:2]], [CPUS[:2], CPUS[2:]], [CPUS]])
def test_its_loss_and_gradients_are_those_of_one_device(graph: Any, devices: List[List[str]]) -> None:
    staged = with_gradients(devices)
    with tf.variable_scope("", reuse=True):
        plain = with_gradients([""])
    assert len(staged) == 1 + 2 * (ARGS["layers"] + 1)
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": len(CPUS)})) as session:
        session.run(tf.global_variables_initializer())
        for ours, theirs in zip(*session.run([staged, plain])):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_layers_and_their_gradients_sit_on_their_stages(graph: Any) -> None:
    with_gradients([CPUS[:2], CPUS[2:]])
    forward = [op.device for op in graph.get_operations() if op.type == "Relu"]
    assert forward == [CPUS[0], CPUS[0], CPUS[1], CPUS[1], CPUS[2], CPUS[2], CPUS[3], CPUS[3]]
    assert sorted(op.device for op in graph.get_operations() if op.type == "ReluGrad") == forward


def test_in_a_cluster_the_variables_are_on_the_ps_and_the_layers_on_the_stages_of_each_tower() -> None:
    task = Task("worker", 0, {"ps": ["a:1", "b:1"], "worker": ["c:1"]})
    train = Train(stages=2, towers=2, tower_batch_size=4)
    pool = own_pool(task, train)
    replica = Builder(Job.from_module(pipeline).with_args(ARGS), as_client(task, pool), train, ARGS, pool).build()
    assert {variable.device.split("/")[1] for variable in replica.variables} == {"job:ps"}
    for kind, scope in [("Relu", "tower_"), ("ReluGrad", "gradients")]:
        devices = [op.device for op in replica.graph.get_operations() if op.type == kind and op.name.startswith(scope)]
        assert sorted(devices) == [f"/job:worker/task:0{cpu}" for cpu in CPUS for _ in range(2)]


def test_it_learns_to_read_digits_with_data_and_model_parallelism(tmp_path: Path) -> None:
    path = tmp_path / "hosts.yaml"
    path.write_text("job: pipeline\ncluster: {ps: [localhost], worker: [localhost, localhost]}\n")
    train = replace(Train(), steps=150, stages=2, towers=2, tower_batch_size=16)
    run = ThreadedRun(load(path), "jobs.pipeline", train, {}, tmp_path / "run").start()
    run.finish()
    assert max(outcome.metrics.get("accuracy", 0) for outcome in run.outcomes) > 0.9
