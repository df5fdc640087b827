"""Tables are looked up where they are: only rows travel, and their gradients."""

from typing import Any, Callable, Dict, List, NamedTuple, Set

import numpy as np
import pytest

from cluster.model.mirrors import device_setter
from cluster.runtime.devices import worker_device
from cluster.runtime.gradients import merge_rows
from cluster.runtime.tf_compat import tf
from cluster.task import Task
from cluster.towers import add_gradients, tower_outputs
from cluster.updates.optimizer_gradients import own_gradients
from cluster.variables.layout import Layout
from cluster.variables.masters import Masters, saved_variables
from cluster.variables.placement import Placement
from cluster.variables.profile import VariableProfile, profile_variables
from cluster.variables.tables import move, split_rows
from cluster.variables.uses import ancestors
from tests.cluster.steps.test_sync_worker import servers_of

ROWS, WIDTH = 7500, 8  # 234 KiB: enough for a slice on each of three servers
TASK = Task("worker", 0, {"ps": ["a:1"], "worker": ["b:1"]})
HOST = worker_device("worker", 0)
IDS = np.array([[7, 7499, 7], [2500, 2499, 0], [5000, 4999, 7], [1, 2, 3]])
VALUES = np.random.RandomState(0).rand(ROWS, WIDTH).astype(np.float32)
NAMES = ("table", "weights")
ISOLATED = tf.ConfigProto(isolate_session_state=True, allow_soft_placement=True)
Lookup = Callable[[Any, Any], Any]


@pytest.fixture
def graph() -> Any:
    with tf.Graph().as_default() as graph:
        yield graph


def by_gather(table: Any, ids: Any) -> Any:
    return tf.gather(table, ids)


def by_embedding_lookup(table: Any, ids: Any) -> Any:
    return tf.nn.embedding_lookup(table, ids)


def by_adding_up(table: Any, ids: Any) -> Any:
    rows = tf.sparse.from_dense(ids + 1)
    words = tf.SparseTensor(rows.indices, rows.values - 1, rows.dense_shape)
    return tf.nn.embedding_lookup_sparse(table, words, None, combiner="sum")[:, None]


LOOKUPS = [by_gather, by_embedding_lookup, by_adding_up]


def model(lookup: Lookup, use_resource: bool = False) -> Callable[..., Any]:
    def loss(ids: Any) -> Any:
        initial = {"initializer": tf.constant_initializer(VALUES), "use_resource": use_resource}
        table = tf.get_variable("table", [ROWS, WIDTH], **initial)
        weights = tf.get_variable("weights", [WIDTH], initializer=tf.ones_initializer())
        return tf.reduce_sum(tf.square(tf.reduce_sum(lookup(table, ids), 1) * weights), 1)

    return loss


class Built(NamedTuple):
    """A worker's graph: its losses, and the gradients of what is on the servers, by the author's names."""

    losses: List[Any]
    layout: Layout
    masters: Masters
    table: List[Any]  # a sparse gradient for each slice
    weights: Any


def built(lookup: Lookup, num_ps: int, towers: int = 2, use_resource: bool = False, ids: Any = IDS) -> Built:
    """A worker whose towers share a table that is on the servers."""
    devices = [device_setter(TASK, worker_device("worker", 0, f"CPU:{index}")) for index in range(towers)]
    with tf.device(HOST):
        losses = tower_outputs(model(lookup, use_resource), devices, {"ids": tf.constant(ids)})
        variables = tf.trainable_variables()
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        parts = [tf.reduce_mean(loss) / towers for loss in losses]
        pairs = add_gradients([own_gradients(optimizer, part, variables).pairs for part in parts])
        (table, mirror), (weights, _) = pairs
        grads = dict(zip(NAMES, (table, weights)))
        layout = Layout(profile_variables(variables, grads, True, ancestors([*losses, table, weights])), num_ps)
        servers = Placement(num_ps, layout.sizes).servers
        masters = Masters(layout, servers, {each.op.name: each for each in variables}, {})
        move(mirror, masters.pieces["table"], HOST)
        return Built(losses, layout, masters, split_rows(merge_rows(table), masters.pieces["table"]), weights)


def job(device: str) -> str:
    return device.split("/")[1] if device else ""


def crossing(fetches: List[Any]) -> Set[Any]:
    """The tensors that travel between a ps and the worker when ``fetches`` are computed."""
    return {tensor for op in ancestors(fetches) for tensor in op.inputs if job(tensor.op.device) != job(op.device)}


@pytest.mark.parametrize("num_ps", [1, 3])
@pytest.mark.parametrize("lookup", LOOKUPS)
@pytest.mark.parametrize("use_resource", [False, True])
def test_only_rows_and_their_numbers_travel_and_the_gradient_does_not_go_back_and_forth(
    graph: Any, lookup: Lookup, num_ps: int, use_resource: bool
) -> None:
    worker = built(lookup, num_ps, use_resource=use_resource)
    assert len(worker.table) == num_ps
    travelling = crossing([*worker.table, worker.weights])
    rows = [tensor for tensor in travelling if tensor.shape.as_list() == [None, WIDTH]]
    numbers = [tensor for tensor in travelling if tensor.shape.as_list() == [None]]
    assert (len(rows), len(numbers)) == (2 * num_ps, 2 * num_ps)  # for each tower and slice
    assert len(travelling) == 4 * num_ps
    assert {job(tensor.op.device) for tensor in rows} == {"job:ps"}
    assert {job(tensor.op.device) for tensor in numbers} == {"job:worker"}


@pytest.mark.parametrize("num_ps", [1, 3])
@pytest.mark.parametrize("lookup", LOOKUPS)
@pytest.mark.parametrize("use_resource", [False, True])
def test_nothing_that_is_computed_reads_the_workers_own_variable(
    graph: Any, lookup: Lookup, num_ps: int, use_resource: bool
) -> None:
    worker = built(lookup, num_ps, use_resource=use_resource)
    needed = {op.name for op in ancestors([*worker.losses, *worker.table, worker.weights])}
    assert not {name for name in needed if name == "table" or name.startswith("table/")}


@pytest.mark.parametrize("num_ps", [1, 3])
@pytest.mark.parametrize("lookup", LOOKUPS)
@pytest.mark.parametrize("use_resource", [False, True])
def test_values_and_gradients_are_those_of_one_table_on_one_device(
    graph: Any, lookup: Lookup, num_ps: int, use_resource: bool
) -> None:
    worker = built(lookup, num_ps, use_resource=use_resource)
    slices = tf.concat([tf.convert_to_tensor(merge_rows(part)) for part in worker.table], 0)
    found = locally(worker, [tf.reduce_mean(tf.stack(worker.losses)), slices, worker.weights])
    with tf.Graph().as_default(), tf.Session() as session:
        loss = tf.reduce_mean(model(lookup)(tf.constant(IDS)))
        grads = [tf.convert_to_tensor(grad) for grad in tf.gradients(loss, tf.trainable_variables())]
        session.run(tf.global_variables_initializer())
        for ours, theirs in zip(found, session.run([loss, *grads])):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def locally(worker: Built, fetches: Any) -> Any:
    """The value of ``fetches``, with every device of the cluster on this process's CPU; the worker has no table."""
    graph = tf.get_default_graph()
    own = tf.variables_initializer([each for each in tf.trainable_variables() if each.op.name != "table"])
    given = worker.masters.first_values()
    definition = graph.as_graph_def()
    for node in definition.node:
        node.device = ""
    with tf.Graph().as_default() as copy, tf.Session() as session:
        tf.import_graph_def(definition, name="")
        for made in (own, given):
            session.run(copy.get_operation_by_name(made.name))
        return session.run([copy.get_tensor_by_name(each.name) for each in fetches])


def test_a_row_is_asked_for_once_however_often_an_example_has_it(graph: Any) -> None:
    worker = built(by_gather, 1, towers=1)
    takes = [op for op in graph.get_operations() if op.type.startswith("Gather") and "ps" in op.device]
    (take,) = [op for op in takes if op.inputs[0].op.name in ("servers/table", "servers/table/read")]
    (rows,) = locally(worker, [take.inputs[1]])
    assert sorted(rows) == sorted(set(IDS.ravel()))


@pytest.mark.parametrize("num_ps", [1, 3])
def test_an_id_outside_of_the_table_is_refused(graph: Any, num_ps: int) -> None:
    worker = built(by_gather, num_ps, towers=1, ids=np.array([[0, 1, ROWS]]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"not in \[0, "):
        locally(worker, worker.losses)


def test_a_tables_shape_is_known_without_its_value(graph: Any) -> None:
    def with_shape(table: Any, ids: Any) -> Any:
        return tf.gather(table, ids) * tf.cast(tf.shape(table)[0] / tf.shape(table)[1], tf.float32)

    for use_resource in (False, True):
        with tf.Graph().as_default():
            worker = built(with_shape, 3, use_resource=use_resource)
            travelling = crossing([*worker.losses, *worker.table])
            assert {tuple(tensor.shape.as_list()) for tensor in travelling} == {(None,), (None, WIDTH)}
            expected = np.square(VALUES[IDS].sum(1) * ROWS / WIDTH).sum(1)
            np.testing.assert_allclose(np.concatenate(locally(worker, worker.losses)), expected, rtol=1e-5)


@pytest.mark.parametrize("use_resource", [False, True])
def test_an_evaluation_may_read_a_table_whole_and_gets_it_from_the_servers(graph: Any, use_resource: bool) -> None:
    # What a step does decides where the table is; the norm is nothing that a step needs.
    norms: List[Any] = []

    def with_norm(table: Any, ids: Any) -> Any:
        is_asked = tf.reduce_any(ids >= 0)
        norms.append(tf.reduce_sum(table))

        def in_a_branch(use: Callable[[], Any]) -> Any:  # and in a branch of it, as tf.nn.zero_fraction of a summary
            return tf.cond(is_asked, lambda: tf.cond(is_asked, use, lambda: 0.0), lambda: 0.0)

        norms.append(in_a_branch(lambda: tf.reduce_sum(table)))
        norms.append(in_a_branch(lambda: tf.reduce_sum(tf.gather(table, tf.range(ROWS)))))
        return tf.gather(table, ids)

    worker = built(with_norm, 3, use_resource=use_resource)
    assert len(worker.masters.pieces["table"]) == 3
    np.testing.assert_allclose(locally(worker, norms), [VALUES.sum()] * 6, rtol=1e-4)


def described(use: Callable[[Any], Any], **options: Any) -> VariableProfile:
    """What is said of a variable whose use, summed up, is the loss."""
    with tf.Graph().as_default():
        variable = tf.get_variable("v", [10, 4], **options)
        loss = tf.add_n([tf.cast(tf.reduce_sum(each), tf.float32) for each in tf.nest.flatten(use(variable))])
        (grad,) = tf.gradients(loss, [variable])
        return profile_variables([variable], {} if grad is None else {"v": grad}, True, ancestors([loss, grad]))["v"]


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_variable_is_a_table_if_only_rows_of_it_are_taken(use_resource: bool) -> None:
    ids = [1, 2, 2]
    options = {"use_resource": use_resource}
    assert described(lambda v: tf.gather(v, ids), **options).lookups == 3
    assert described(lambda v: (tf.gather(v, ids), tf.nn.embedding_lookup(v, ids)), **options).lookups == 6
    assert described(lambda v: tf.gather(v, tf.placeholder(tf.int32, [None])), **options).lookups == 10
    for use in (
        tf.nn.l2_loss,
        lambda v: tf.gather(v, ids, axis=1),
        lambda v: tf.gather(v, [0, 1, 2, 3]) @ v[:4],
        lambda v: v,
    ):
        found = described(use, **options)
        assert found.lookups is None and found.is_dense


@pytest.mark.parametrize("use_resource", [False, True])
def test_rows_that_are_taken_inside_a_loop_keep_a_variable_with_the_worker(use_resource: bool) -> None:
    def taken(v: Any) -> Any:
        return tf.while_loop(lambda i, _: i < 3, lambda i, s: (i + 1, s + tf.reduce_sum(tf.gather(v, [i]))), (0, 0.0))[
            1
        ]

    assert described(taken, use_resource=use_resource).lookups is None


def test_bytes_are_those_of_the_value_whether_reference_or_resource() -> None:
    for use_resource in (False, True):
        assert described(tf.nn.l2_loss, use_resource=use_resource).bytes == 160
        assert described(tf.nn.l2_loss, dtype=tf.float16, use_resource=use_resource).bytes == 80


def test_what_is_not_float32_does_not_travel_in_buckets() -> None:
    assert described(tf.nn.l2_loss).is_dense
    assert not described(tf.nn.l2_loss, dtype=tf.float64).is_dense
    assert not described(lambda v: tf.stop_gradient(v)).is_dense


def test_a_large_variable_that_is_never_trained_is_looked_up_and_a_small_one_is_not() -> None:
    def looked_up(rows: int) -> Any:
        with tf.Graph().as_default():
            frozen = tf.get_variable("v", [rows, 1 << 10], trainable=False)
            return profile_variables([frozen], {}, True, ancestors([tf.gather(frozen, [1, 2])]))["v"].lookups

    assert looked_up((16 << 10) + 1) == 2
    assert looked_up(1 << 10) is None


def test_a_variable_may_be_cut_unless_its_optimizer_or_its_constraint_looks_at_it_whole() -> None:
    with tf.Graph().as_default():
        free, bound = tf.get_variable("free", [2]), tf.get_variable("bound", [2], constraint=tf.nn.relu)
        for is_elementwise in (True, False):
            found = profile_variables([free, bound], {}, is_elementwise, set())
            assert [found[name].may_be_cut for name in ("free", "bound")] == [is_elementwise, False]


def test_a_step_reads_a_tables_rows_and_other_variables_whole(graph: Any) -> None:
    layout = built(by_gather, 3).layout
    assert layout.read_bytes("weights") == WIDTH * 4
    assert layout.read_bytes("table/part_1") == 4 * 3 * WIDTH * 4 // 3  # of each tower's part of the batch
    assert sum(size for name, size in layout.sizes.items() if "part" in name) == VALUES.nbytes


def test_a_checkpoint_of_slices_is_read_with_any_other_number_of_servers(tmp_path: Any) -> None:
    values = {}
    (target,) = servers_of([("ps", 3), ("worker", 1)])
    for num_ps in (3, 2, 1):
        with tf.Graph().as_default(), tf.Session(target, config=ISOLATED) as session:
            masters = built(by_gather, num_ps).masters
            assert len(masters.pieces["table"]) == num_ps
            of_name: Dict[str, List[Any]] = {}
            for each in saved_variables(masters.all):
                of_name.setdefault(each.name, []).append(each.variable)
            assert sorted(of_name) == ["table", "weights"]
            whole_or_slices = {n: v if v[0]._get_save_slice_info() else v[0] for n, v in of_name.items()}
            saver = tf.train.Saver(whole_or_slices)
            if num_ps == 3:
                session.run(tf.variables_initializer(tf.trainable_variables()[1:]))
                session.run(masters.first_values())
                saver.save(session, str(tmp_path / "model"), write_meta_graph=False)
            else:
                saver.restore(session, str(tmp_path / "model"))
            values[num_ps] = np.concatenate(session.run(masters.pieces["table"]))
    assert all((value == VALUES).all() for value in values.values())
    assert (tf.train.load_checkpoint(str(tmp_path / "model")).get_tensor("table") == VALUES).all()
