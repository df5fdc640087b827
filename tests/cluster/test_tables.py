"""Tables are looked up where they are: only rows travel, and their gradients."""

from typing import Any, Callable, List, Set

import numpy as np
import pytest

from cluster.accumulators import merge_rows
from cluster.engine import tf
from cluster.measuring import Measured, measure
from cluster.placement import Placement, device_setter, worker_device
from cluster.towers import average_gradients, tower_gradients, tower_outputs
from cluster.variables import SharedVariables

ROWS, WIDTH = 50000, 8  # 1.5 MiB: enough for a slice on each of three servers
HOST = worker_device("worker", 0)
IDS = np.array([[7, 49999, 7], [16667, 16666, 0], [33334, 33333, 7], [1, 2, 3]])
VALUES = np.random.RandomState(0).rand(ROWS, WIDTH).astype(np.float32)
Lookup = Callable[[Any, Any], Any]


@pytest.fixture
def graph() -> Any:
    with tf.Graph().as_default() as graph:
        yield graph


def by_gather(table: Any, ids: Any) -> Any:
    return tf.gather(table, ids)


def by_embedding_lookup(table: Any, ids: Any) -> Any:
    return tf.nn.embedding_lookup(table, ids)


def model(lookup: Lookup) -> Callable[..., Any]:
    def loss(ids: Any) -> Any:
        table = tf.get_variable("table", [ROWS, WIDTH], initializer=tf.constant_initializer(VALUES))
        weights = tf.get_variable("weights", [WIDTH], initializer=tf.ones_initializer())
        return tf.reduce_sum(tf.square(tf.reduce_sum(lookup(table, ids), 1) * weights), 1)

    return loss


def shared(lookup: Lookup, num_ps: int, host: str = HOST) -> SharedVariables:
    return SharedVariables(measure(lambda: model(lookup)(tf.placeholder(tf.int64, [4, 3]))), num_ps, host)


def built(lookup: Lookup, num_ps: int, towers: int = 2) -> Any:
    """The worker's mean gradients, (gradient, variable) for each slice and the weights."""
    variables = shared(lookup, num_ps)
    placement = Placement(num_ps, variables.sizes)
    devices = [device_setter(placement, worker_device("worker", 0, f"CPU:{index}")) for index in range(towers)]
    with tf.device(HOST):
        ids = tf.constant(IDS)
        with variables.scope():
            losses = tower_outputs(model(lookup), devices, {"ids": ids})
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        return average_gradients(tower_gradients(optimizer, losses, tf.trainable_variables(), devices))


def job(device: str) -> str:
    return device.split("/")[1] if device else ""


def crossing(graph: Any, fetches: List[Any]) -> Set[Any]:
    """The tensors that travel between a ps and the worker when ``fetches`` are computed."""
    found: Set[Any] = set()
    seen: Set[Any] = set()
    stack = [tensor.op for tensor in fetches]
    while stack:
        op = stack.pop()
        if op in seen:
            continue
        seen.add(op)
        found.update(tensor for tensor in op.inputs if job(tensor.device) != job(op.device))
        stack.extend([*(tensor.op for tensor in op.inputs), *op.control_inputs])
    return found


@pytest.mark.parametrize("num_ps", [1, 3])
@pytest.mark.parametrize("lookup", [by_gather, by_embedding_lookup])
def test_only_rows_and_their_numbers_travel_and_the_gradient_does_not_go_back_and_forth(
    graph: Any, lookup: Lookup, num_ps: int
) -> None:
    grads = built(lookup, num_ps)
    assert len(grads) == num_ps + 1
    parts = [part for grad, _ in grads for part in ([grad.values, grad.indices] if _sparse(grad) else [grad])]
    travelling = crossing(graph, parts)
    whole = {tensor.op.name for tensor in travelling if None not in tensor.shape.as_list()}
    assert whole == {"weights"}
    rows = [tensor for tensor in travelling if tensor.shape.as_list() == [None, WIDTH]]
    numbers = [tensor for tensor in travelling if tensor.shape.as_list() == [None]]
    assert (len(rows), len(numbers)) == (2 * num_ps, 2 * num_ps)  # for each tower and slice
    assert len(travelling) == 4 * num_ps + 1
    assert {job(tensor.device) for tensor in rows} == {"job:ps"}
    assert {job(tensor.device) for tensor in numbers} == {"job:worker"}


def _sparse(grad: Any) -> bool:
    return isinstance(grad, tf.IndexedSlices)


@pytest.mark.parametrize("num_ps", [1, 3])
@pytest.mark.parametrize("lookup", [by_gather, by_embedding_lookup])
def test_values_and_gradients_are_those_of_one_table_on_one_device(graph: Any, lookup: Lookup, num_ps: int) -> None:
    grads = built(lookup, num_ps)
    assert all(_sparse(grad) for grad, variable in grads if variable.op.name.startswith("table"))
    slices = [tf.convert_to_tensor(merge_rows(grad)) for grad, _ in grads if _sparse(grad)]
    found = locally(graph, tf.concat(slices, 0))
    with tf.Graph().as_default(), tf.Session() as session:
        loss = tf.reduce_mean(model(lookup)(tf.constant(IDS)))
        expected = tf.convert_to_tensor(tf.gradients(loss, tf.trainable_variables()[0])[0])
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(found, session.run(expected), rtol=1e-5)


def locally(graph: Any, fetch: Any) -> Any:
    """The value of ``fetch``, with every device of the cluster on this process's CPU."""
    initialise = tf.global_variables_initializer()
    definition = graph.as_graph_def()
    for node in definition.node:
        node.device = ""
    with tf.Graph().as_default() as copy, tf.Session() as session:
        tf.import_graph_def(definition, name="")
        session.run(copy.get_operation_by_name(initialise.name))
        return session.run(copy.get_tensor_by_name(fetch.name))


def test_a_row_is_asked_for_once_however_often_an_example_has_it(graph: Any) -> None:
    variables = shared(by_gather, 1)
    with variables.scope():
        model(by_gather)(tf.constant(IDS))
    (take,) = [op for op in graph.get_operations() if op.type == "GatherV2" and op.inputs[0].op.name == "table/read"]
    assert sorted(locally(graph, take.inputs[1])) == sorted(set(IDS.ravel()))


def test_an_id_outside_of_the_table_is_refused(graph: Any) -> None:
    with shared(by_gather, 3).scope():
        loss = model(by_gather)(tf.constant([[0, 1, ROWS]], tf.int64))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"not in \[0, "):
        locally(graph, loss)


def measured(use: Callable[[Any], Any], **options: Any) -> Measured:
    return measure(lambda: use(tf.get_variable("v", [10, 4], **options)))["v"]


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_variable_is_a_table_if_only_rows_of_it_are_taken(use_resource: bool) -> None:
    ids = [1, 2, 2]
    options = {"use_resource": use_resource}
    assert measured(lambda v: tf.gather(v, ids), **options).lookups == 3
    assert measured(lambda v: (tf.gather(v, ids), tf.nn.embedding_lookup(v, ids)), **options).lookups == 6
    assert measured(lambda v: tf.gather(v, tf.placeholder(tf.int32, [None])), **options).lookups == 10
    for use in (tf.nn.l2_loss, lambda v: tf.gather(v, ids, axis=1), lambda v: tf.gather(v, ids) @ v[:4], lambda v: v):
        assert measured(use, **options).lookups is None


def test_bytes_are_those_of_the_value_whether_reference_or_resource() -> None:
    for use_resource in (False, True):
        assert measured(tf.nn.l2_loss, use_resource=use_resource).bytes == 160
        assert measured(tf.nn.l2_loss, dtype=tf.float16, use_resource=use_resource).bytes == 80


def test_a_step_reads_a_tables_rows_and_other_variables_whole() -> None:
    variables = shared(by_gather, 3)
    assert variables.read_bytes("weights") == WIDTH * 4
    assert variables.read_bytes("table/part_1") == 4 * 3 * WIDTH * 4 // 3
    assert sum(size for name, size in variables.sizes.items() if "part" in name) == VALUES.nbytes


def test_a_large_variable_that_is_no_table_is_seen_whole_by_the_job_and_trained_in_slices(graph: Any) -> None:
    def build() -> Any:
        w = tf.get_variable("w", [3000, 128], initializer=tf.random_normal_initializer(seed=3))
        return tf.reduce_sum(tf.square(tf.ones([2, 3000]) @ w), 1)

    variables = SharedVariables(measure(build), 3, HOST)
    with variables.scope():
        loss = build()
    parts = tf.trainable_variables()
    assert [part.op.name for part in parts] == [f"w/part_{index}" for index in range(24)]  # of 64 KiB
    assert all(grad.shape == part.shape for grad, part in zip(tf.gradients(loss, parts), parts))
    first, second = (locally(graph, part.initial_value) for part in parts[:2])
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.1


def test_a_checkpoint_of_slices_is_read_with_any_other_number_of_servers(tmp_path: Any) -> None:
    values = {}
    for num_ps in (3, 2, 1):
        with tf.Graph().as_default(), tf.Session() as session:
            with shared(by_gather, num_ps, "/device:CPU:0").scope():
                model(by_gather)(tf.constant(IDS))
            saver = tf.train.Saver(tf.global_variables(), sharded=False)
            if num_ps == 3:
                session.run(tf.global_variables_initializer())
                saver.save(session, str(tmp_path / "model"))
            else:
                saver.restore(session, str(tmp_path / "model"))
            slices = [v for v in tf.global_variables() if v.op.name.startswith("table")]
            assert len(slices) == num_ps
            values[num_ps] = np.concatenate(session.run(slices))
    assert all((value == VALUES).all() for value in values.values())
    assert (tf.train.load_checkpoint(str(tmp_path / "model")).get_tensor("table") == VALUES).all()
