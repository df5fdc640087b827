"""Whose value or gradient travels is told by the graph."""

from typing import Any, List

import pytest

from cluster.runtime.devices import ps_device, worker_device
from cluster.runtime.tf_compat import tf
from cluster.steps.accumulators import Accumulator
from cluster.steps.exchange import Exchange, plain_push
from cluster.trace.recording import Payload
from cluster.trace.spans import DevicePlace, Transfer
from cluster.variables.local_copies import LocalCopies
from cluster.variables.wire_format import Wire

WORKER = worker_device("worker", 0)
VARIABLES = {"dense", "table", "cut/part_0", "cut/part_1"}
BUCKETS = {"bucket_0": ("cut/part_0", "dense")}


@pytest.fixture
def graph() -> Any:
    """Two ps; ``dense`` on the first, a table on the second, a variable in two slices on both."""
    with tf.Graph().as_default() as graph, tf.device(WORKER):
        with tf.device(ps_device(0)):
            tf.get_variable("dense", [4, 2], use_resource=False)
            tf.get_variable("cut/part_0", [3], use_resource=False)
            tf.get_variable("counter", [], use_resource=False)
        with tf.device(ps_device(1)):
            tf.get_variable("table", [9, 2], use_resource=False)
            tf.get_variable("cut/part_1", [3], use_resource=False)
        yield graph


def variable(name: str) -> Any:
    (found,) = [each for each in tf.global_variables() if each.op.name == name]
    return found


def pulled(tensor: Any, ps: int) -> List[str]:
    transfer = Transfer(tensor.op.name, 1, DevicePlace(f"ps:{ps}", "CPU:0"), DevicePlace("worker:0", "CPU:0"))
    return Payload(tensor.graph, VARIABLES, BUCKETS)(transfer)


def pushed(tensor: Any, ps: int) -> List[str]:
    transfer = Transfer(tensor.op.name, 1, DevicePlace("worker:0", "CPU:0"), DevicePlace(f"ps:{ps}", "CPU:0"))
    return Payload(tensor.graph, VARIABLES, BUCKETS)(transfer)


def test_a_pull_is_the_variable_its_reading_or_what_a_ps_made_of_it(graph: Any) -> None:
    dense = variable("dense")
    with tf.device(ps_device(0)):
        narrow = tf.cast(tf.identity(dense), tf.bfloat16)
    with tf.device(ps_device(1)):
        rows = tf.gather(variable("table"), tf.constant([1, 2]))
    assert pulled(dense.op.outputs[0], 0) == pulled(narrow, 0) == ["dense"]
    assert pulled(rows, 1) == ["table"]


def test_what_a_ps_made_of_no_variable_of_the_model_is_no_pull(graph: Any) -> None:
    with tf.device(ps_device(0)):
        assert pulled(variable("counter") + 1.0, 0) == []


def test_a_push_is_the_gradient_that_an_accumulator_takes_and_its_step_is_none(graph: Any) -> None:
    step = tf.constant(0, tf.int64)
    gradient, rows = tf.ones([4, 2]), tf.IndexedSlices(tf.ones([1, 2]), tf.constant([3]), tf.constant([9, 2], tf.int64))
    exchange = Exchange(LocalCopies([], {}, ""), Wire())
    Accumulator(plain_push(gradient, variable("dense")), 2, exchange).give(gradient, step)
    taken = Accumulator(plain_push(rows, variable("table")), 2, exchange).give(rows, step)
    assert pushed(gradient, 0) == ["dense"]
    assert pushed(taken.inputs[3], 1) == ["table"]
    assert pushed(step, 0) == pushed(step, 1) == []


def test_variables_that_are_read_or_given_together_are_all_named(graph: Any) -> None:
    both = [variable("dense"), variable("cut/part_0")]
    with tf.device(ps_device(0)):
        together = tf.concat([tf.reshape(tf.identity(both[0]), [-1]), both[1]], 0)
        collected = tf.ConditionalAccumulator(tf.float32, [11], shared_name="bucket_0/gradients")
    assert pulled(together, 0) == ["cut/part_0", "dense"]
    gradient = tf.ones([11], tf.bfloat16)
    with tf.device(ps_device(0)):
        collected.apply_grad(tf.cast(gradient, tf.float32), local_step=tf.constant(0, tf.int64))
    assert pushed(gradient, 0) == ["cut/part_0", "dense"]


def test_what_lies_ready_in_an_outbox_is_named_and_a_token_is_not(graph: Any) -> None:
    with tf.device(ps_device(0)):
        outbox = tf.raw_ops.VariableV2(shape=[11], dtype=tf.bfloat16, shared_name="bucket_0/outbox")
        token = tf.FIFOQueue(-1, tf.int64, shapes=(), shared_name="token_sync/pushes_of_0_for_1").dequeue()
        with tf.control_dependencies([token]):
            sent = tf.identity(outbox)
    assert pulled(sent, 0) == ["cut/part_0", "dense"]
    assert pulled(token, 0) == []


def test_slices_of_one_gradient_are_told_apart_by_where_they_go(graph: Any) -> None:
    parts = tf.split(tf.ones([6]), 2)
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    optimizer.apply_gradients(zip(parts, [variable("cut/part_0"), variable("cut/part_1")]))
    assert pushed(parts[0], 0) == ["cut/part_0"]
    assert pushed(parts[0], 1) == ["cut/part_1"]


def test_a_clipped_gradient_is_still_its_own_variable_s(graph: Any) -> None:
    variables = [variable("dense"), variable("table")]
    gradients = [tf.ones([4, 2]), tf.ones([9, 2])]
    with tf.device(ps_device(0)):
        clipped, _ = tf.clip_by_global_norm(gradients, 1.0)
    tf.train.AdamOptimizer().apply_gradients(zip(clipped, variables))
    assert pushed(clipped[0].op.inputs[0], 0) == ["dense"]
    assert pushed(clipped[1].op.inputs[0], 1) == ["table"]


def test_rates_that_travel_with_a_gradient_are_none(graph: Any) -> None:
    rate, gradient = tf.constant(0.1), tf.ones([4, 2])
    tf.train.GradientDescentOptimizer(rate).apply_gradients([(gradient, variable("dense"))])
    assert pushed(gradient, 0) == ["dense"]
    assert pushed(rate, 0) == []


def test_an_operation_that_only_tensorflow_knows_carries_nothing(graph: Any) -> None:
    transfer = Transfer("ConstantFolding/x", 1, DevicePlace("ps:0", "CPU:0"), DevicePlace("worker:0", "CPU:0"))
    assert Payload(graph, VARIABLES, BUCKETS)(transfer) == []
