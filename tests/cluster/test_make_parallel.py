"""``make_parallel`` gives what the well-known function of that name gives, and takes more."""

from typing import Any, Dict, Iterator, List, Tuple

import numpy as np
import pytest

from cluster.runtime.tf_compat import tf
from cluster.stages import stage
from cluster.towers import make_parallel
from launch.agent.linux.sockets import free_ports

CPUS = ["/device:CPU:0", "/device:CPU:1"]


@pytest.fixture
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(0)
        yield graph


def run(fetches: Any, target: str = "") -> Any:
    with tf.Session(target, config=tf.ConfigProto(device_count={"CPU": 4})) as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches)


def reference(fn: Any, number: int, **batch: Any) -> Any:
    """Equal parts on devices in turn, the variables of the first reused, results put together again."""
    parts = {name: tf.split(value, number) for name, value in batch.items()}
    results = []
    for index in range(number):
        scope = tf.variable_scope(tf.get_variable_scope(), reuse=index > 0)
        with tf.device(tf.DeviceSpec(device_type="CPU", device_index=index)), scope:
            results.append(fn(**{name: part[index] for name, part in parts.items()}))
    return tf.concat(results, axis=0)


def model(x: Any, y: Any) -> Any:
    """The polynomial, untouched: nothing in it knows of towers."""
    w = tf.get_variable("w", shape=[3, 1], initializer=tf.constant_initializer([[0.5], [-1.0], [2.0]]))
    f = tf.stack([tf.square(x), x, tf.ones_like(x)], 1)
    yhat = tf.squeeze(tf.matmul(f, w), 1)
    return tf.square(yhat - y)


def auto_reusing(x: Any, y: Any) -> Any:
    with tf.variable_scope("inner", reuse=tf.AUTO_REUSE):
        return model(x, y)


def data() -> Dict[str, Any]:
    x = np.linspace(-10, 10, 12).astype(np.float32)
    return {"x": tf.constant(x), "y": tf.constant(5 * x**2 + 3)}


@pytest.mark.parametrize("fn", [model, auto_reusing])
@pytest.mark.parametrize("outer", [None, tf.AUTO_REUSE])
def test_values_and_gradients_are_those_of_the_reference(graph: Any, fn: Any, outer: Any) -> None:
    found = []
    both: List[Tuple[Any, Any]] = [(make_parallel, CPUS), (reference, 2)]
    for make, devices in both:
        with tf.variable_scope("made", reuse=outer if make is make_parallel else True):
            loss = make(fn, devices, **data())
        grads = tf.gradients(tf.reduce_mean(loss), tf.trainable_variables(), colocate_gradients_with_ops=True)
        found.append([loss, *grads])
    assert len(tf.trainable_variables()) == 1
    for ours, theirs in zip(*run(found)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("optimizer", [tf.train.GradientDescentOptimizer, tf.train.AdamOptimizer])
def test_gradients_run_on_their_towers_devices_if_they_are_colocated(graph: Any, optimizer: Any) -> None:
    loss = make_parallel(model, CPUS, **data())
    optimizer(0.1).minimize(tf.reduce_mean(loss), colocate_gradients_with_ops=True)
    for tower, device in enumerate(CPUS):
        scope = f"tower_{tower}/"
        backward = [
            op for op in graph.get_operations() if f"gradients/{scope}" in op.name and "/MatMul_grad" in op.name
        ]
        assert backward and {op.device for op in backward if op.type == "MatMul"} == {device}


def test_structures_of_tensors_go_in_and_come_out(graph: Any) -> None:
    def fn(pair: Any, more: Any) -> Any:
        first, second = pair
        return {"sum": first + second, "rest": [more["deep"]["er"] * 2, (first,)]}

    first, second = tf.range(4.0), tf.range(4.0) * 10
    made = make_parallel(fn, CPUS, pair=(first, second), more={"deep": {"er": tf.reshape(tf.range(8.0), [4, 2])}})
    values = run(made)
    assert values["sum"].tolist() == [0, 11, 22, 33]
    assert values["rest"][0].tolist() == [[0, 2], [4, 6], [8, 10], [12, 14]]
    assert values["rest"][1][0].tolist() == [0, 1, 2, 3]


def test_a_nested_batch_that_does_not_divide_is_refused_with_the_name_it_was_given_by(graph: Any) -> None:
    with pytest.raises(ValueError, match="pair: expected a batch that divides among 2 towers, found 3 examples"):
        make_parallel(lambda pair, x: x, CPUS, x=tf.range(4), pair=(tf.range(4), tf.range(3)))


@pytest.fixture(scope="module")
def two_tasks() -> List[str]:
    """The target of one server, whose cluster has another: both live as long as the tests."""
    addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
    servers = [tf.train.Server({"worker": addresses}, "worker", index) for index in range(2)]
    _KEPT.extend(servers)
    return [server.target for server in servers]


_KEPT: List[Any] = []  # a server's destructor may block


def test_devices_may_be_those_of_other_tasks_with_one_client(graph: Any, two_tasks: List[str]) -> None:
    devices = [f"/job:worker/task:{index}/device:CPU:0" for index in range(2)]
    loss = make_parallel(model, devices, **data())
    gradient = tf.gradients(tf.reduce_mean(loss), tf.trainable_variables(), colocate_gradients_with_ops=True)
    with tf.variable_scope("", reuse=True):
        whole = model(**data())
    expected = tf.gradients(tf.reduce_mean(whole), tf.trainable_variables())
    for ours, theirs in zip(*run([[loss, *gradient], [whole, *expected]], two_tasks[0])):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    used = {op.device for op in graph.get_operations() if op.type == "MatMul" and "tower" in op.name}
    assert used == set(devices)


def layers(x: Any) -> Any:
    for index in range(4):
        with stage(index, of=4):
            x = tf.tanh(x @ tf.get_variable(f"layer_{index}", [3, 3]))
    return tf.reduce_sum(x, 1)


def test_a_tower_may_have_a_list_of_devices_for_the_stages_of_its_model(graph: Any) -> None:
    x = tf.reshape(tf.range(12.0), [4, 3]) / 12
    loss = make_parallel(layers, [["/device:CPU:0", "/device:CPU:1"], ["/device:CPU:2", "/device:CPU:3"]], x=x)
    gradients = tf.gradients(loss, tf.trainable_variables(), colocate_gradients_with_ops=True)
    with tf.variable_scope("", reuse=True):
        whole = layers(x)
    expected = tf.gradients(whole, tf.trainable_variables())
    for ours, theirs in zip(*run([[loss, *gradients], [whole, *expected]])):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    placed = [op.device[-1] for op in graph.get_operations() if op.type == "Tanh" and op.name.startswith("tower")]
    assert placed == ["0", "0", "1", "1", "2", "2", "3", "3"]
    backward = [op.device[-1] for op in graph.get_operations() if op.type == "TanhGrad" and "tower" in op.name]
    assert sorted(backward) == placed


def test_without_towers_a_stage_does_nothing_and_one_that_is_not_there_is_refused(graph: Any) -> None:
    with stage(1, of=2):
        assert tf.constant(1).device == ""
    with pytest.raises(ValueError, match=r"stage 2: expected a number from 0 to 1 \(of=2\)"), stage(2, of=2):
        pass
