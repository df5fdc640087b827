"""A variable's value goes once to each device that computes with it, however many lines of the model use it.

CPU devices stand in for GPUs: TensorFlow sends to them what it would send to GPUs.
"""

from collections import Counter
from typing import Any, Dict, List, NamedTuple
from typing import Counter as Counts

import pytest

from cluster.job import Job
from cluster.model.device_pool import as_client, own_pool
from cluster.model.mirrors import device_setter, read_before_loops, read_once
from cluster.runtime.tf_compat import tf
from cluster.task import Task, Train
from cluster.towers import tower_outputs
from cluster.training.graph_builder import Builder
from cluster.variables.uses import ancestors
from tests.support.training.jobs import twice

TASK = Task("localhost", 0, {})
TOWERS = [f"/job:localhost/replica:0/task:0/device:CPU:{index}" for index in (1, 2)]
CLUSTER = {"ps": ["a:1"], "worker": ["b:1", "c:1"]}


@pytest.fixture
def graph() -> Any:
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(0)
        yield graph


def gradients(is_resource: bool) -> List[Any]:
    """Of towers that use each variable of their model twice."""

    def model(x: Any) -> Any:
        w = tf.get_variable("w", [3, 3], use_resource=is_resource)
        bias = tf.get_variable("bias", [3], use_resource=is_resource)
        return tf.reduce_sum(tf.tanh(tf.matmul(tf.tanh(tf.matmul(x, w) + bias), w) + bias), 1)

    losses = tower_outputs(model, [device_setter(TASK, device) for device in TOWERS], {"x": tf.ones([4, 3])})
    variables = tf.trainable_variables()
    return [tf.gradients(tf.reduce_mean(loss), variables, colocate_gradients_with_ops=True) for loss in losses]


def gradients_of_loops(is_lifted: bool) -> List[Any]:
    """Of towers with a loop in a loop, four iterations each; both take the same variables."""

    def model(x: Any) -> Any:
        w = tf.get_variable("w", [3, 3], use_resource=True)
        bias = tf.get_variable("bias", [3], use_resource=True)

        def inner(index: Any, h: Any) -> Any:
            return index + 1, tf.tanh(tf.matmul(h, w) + bias)

        def outer(index: Any, h: Any) -> Any:
            return index + 1, tf.matmul(_looped(inner, h), w)

        return tf.reduce_sum(_looped(outer, x), 1)

    losses, variables = [], []
    for index, device in enumerate(TOWERS):
        with tf.device(device_setter(TASK, device)), tf.variable_scope("", reuse=index > 0):
            losses.append(model(tf.ones([2, 3])))
        variables = tf.trainable_variables()
        if is_lifted:
            read_before_loops(variables)
    return [tf.gradients(tf.reduce_mean(loss), variables, colocate_gradients_with_ops=True) for loss in losses]


def _looped(body: Any, start: Any) -> Any:
    return tf.while_loop(lambda index, _: index < 4, body, [0, start])[1]


def once(fetched: Any) -> None:
    read_once(tf.trainable_variables(), ancestors(tf.nest.flatten(fetched)))


class Ran(NamedTuple):
    values: Any
    sent: Counts[str]  # how often a variable was, by device
    multiplied: Counts[str]  # how many matrix products there are, by device


def run(fetched: Any) -> Ran:
    config = tf.ConfigProto(device_count={"CPU": 3}, allow_soft_placement=True)  # as a worker's session
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    seen = tf.RunMetadata()
    with tf.Session(config=config) as session:
        session.run(tf.global_variables_initializer())
        values = session.run(fetched, options=tf.RunOptions(output_partition_graphs=True), run_metadata=seen)
    nodes = [node for part in seen.partition_graphs for node in part.node]
    sent = [node.attr["recv_device"].s.decode() for node in nodes if node.op == "_Recv" and _is_read(node)]
    return Ran(values, Counter(sent), Counter(node.device for node in nodes if node.op.endswith("MatMul")))


def _is_read(node: Any) -> bool:
    return "read" in node.attr["tensor_name"].s.decode().lower()


def _bits(values: Any) -> List[bytes]:
    return [each.tobytes() for each in tf.nest.flatten(values)]


@pytest.mark.parametrize("is_resource", [False, True])
def test_a_variable_is_sent_once_to_each_device_however_often_it_is_used(graph: Any, is_resource: bool) -> None:
    fetched = gradients(is_resource)
    before = run(fetched)
    assert before.sent == dict.fromkeys(TOWERS, 4 if is_resource else 2)
    once(fetched)
    after = run(fetched)
    assert after.sent == dict.fromkeys(TOWERS, 2)
    assert _bits(after.values) == _bits(before.values)


def test_a_loop_gets_a_variable_once_before_it_begins_and_computes_on_its_towers_device() -> None:
    found = []
    for is_lifted in (False, True):
        with tf.Graph().as_default():
            tf.set_random_seed(0)
            fetched = gradients_of_loops(is_lifted)
            once(fetched)
            found.append(run(fetched))
    before, after = found
    assert after.sent == dict.fromkeys(TOWERS, 2) != before.sent
    assert set(after.multiplied) == set(TOWERS)
    assert _bits(after.values) == _bits(before.values)


def test_a_read_in_a_loop_stays_there_if_the_loop_changes_the_variable(graph: Any) -> None:
    w = tf.get_variable("w", [], use_resource=True)

    def body(index: Any, total: Any) -> Any:
        value = w.read_value()
        with tf.control_dependencies([value]), tf.control_dependencies([tf.assign_add(w, 1.0)]):
            return index + 1, total + value

    assert _is_read_in_its_loop(_looped(body, tf.zeros([])))


def test_a_read_in_a_loop_that_waits_for_something_stays_there(graph: Any) -> None:
    w, counter = (tf.get_variable(name, [], use_resource=True) for name in "wc")

    def body(index: Any, total: Any) -> Any:
        with tf.control_dependencies([tf.assign_add(counter, 1.0)]):
            return index + 1, total + w.read_value()

    assert _is_read_in_its_loop(_looped(body, tf.zeros([])))


def _is_read_in_its_loop(total: Any) -> bool:
    """Whether it is once there was a chance to read earlier."""
    read_before_loops(tf.trainable_variables())
    reads = [each.op for each in _reads_of(total) if each.op.name.startswith("while/Read")]
    return bool(reads) and all(op._get_control_flow_context() is not None for op in reads)


def test_what_is_no_part_of_the_step_keeps_the_read_that_it_had(graph: Any) -> None:
    w = tf.get_variable("w", [2], use_resource=True)
    reads = [w.value(), w.value()]
    inside, outside = tf.add_n(reads), [2 * each for each in reads]
    once(inside)
    assert len({each.op for each in _reads_of(inside)}) == 1
    assert [each.op for thing in outside for each in _reads_of(thing)] == [each.op for each in reads]


def test_a_read_that_waits_and_one_in_a_branch_stay_as_they_are(graph: Any) -> None:
    w, counter = (tf.get_variable(name, [], use_resource=True, initializer=tf.ones_initializer()) for name in "wc")
    first = w.read_value()
    with tf.control_dependencies([tf.assign_add(counter, 1.0)]):
        waiting = w.read_value()
    branch = tf.cond(first > 0, lambda: w.read_value(), lambda: 0.0)
    fetched = first + waiting + branch
    once(fetched)
    assert {op for op in ancestors([fetched]) if op.type == "AssignAddVariableOp"}
    assert run(fetched).values == 3


def _reads_of(tensor: Any) -> List[Any]:
    return [each for op in ancestors([tensor]) for each in op.inputs if each.op.type == "ReadVariableOp"]


@pytest.mark.parametrize(
    "settings", [{}, {"sync": "plain"}, {"mode": "async"}, {"clip_norm": 1.0, "accumulate": 2}], ids=str
)
def test_a_worker_s_step_reads_each_variable_of_a_keras_layer_once(settings: Dict[str, Any]) -> None:
    task, train = Task("worker", 0, CLUSTER), Train(tower_batch_size=2, towers=2, **settings)
    pool = own_pool(task, train)
    built = Builder(Job.from_module(twice), as_client(task, pool), train, {}, pool)
    built.build()
    reads = [op for op in built.uses.step if op.type == "ReadVariableOp"]
    read = [op.inputs[0] for op in reads if {*op.outputs[0].consumers()} & built.uses.step]
    assert len(reads) > 2 * len(read)
    assert sorted(each.op.name for each in read) == sorted(built.model.variables)
