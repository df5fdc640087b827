"""Towers share variables and give what the whole batch on one device would give."""

from typing import Any, Dict, NamedTuple, Tuple

import numpy as np
import pytest

from cluster.runtime.devices import available_gpus, device_names, worker_device
from cluster.runtime.tf_compat import tf
from cluster.towers import add_gradients, average_gradients, make_parallel, split_batch, tower_outputs
from cluster.updates.optimizer_gradients import own_gradients
from cluster.variables.placement import Placement, device_setter

BATCH = 12


@pytest.fixture
def graph() -> Any:
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(0)
        yield graph


def session() -> Any:
    started = tf.Session(config=tf.ConfigProto(device_count={"CPU": 3}))
    started.run(tf.global_variables_initializer())
    return started


def data() -> Dict[str, Any]:
    x = np.linspace(-1, 1, BATCH).astype(np.float32)
    return {"x": tf.constant(x), "y": tf.constant(5 * x**2 + 3)}


def squared_error(x: Any, y: Any) -> Any:
    w = tf.get_variable("w", [3, 1], initializer=tf.constant_initializer([[0.5], [-1.0], [2.0]]))
    features = tf.stack([tf.square(x), x, tf.ones_like(x)], 1)
    return tf.square(tf.squeeze(tf.matmul(features, w), 1) - y)


def test_towers_return_what_one_device_returns_for_the_whole_batch(graph: Any) -> None:
    parallel = make_parallel(squared_error, 3, **data())
    with tf.variable_scope("", reuse=True):
        whole = squared_error(**data())
    with session() as sess:
        np.testing.assert_allclose(*sess.run([parallel, whole]), rtol=1e-6)


def test_minimizing_what_the_towers_return_takes_the_same_step_as_one_device(graph: Any) -> None:
    parallel = tf.reduce_mean(make_parallel(squared_error, 2, **data()))
    with tf.variable_scope("", reuse=True):
        whole = tf.reduce_mean(squared_error(**data()))
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    towers = optimizer.compute_gradients(parallel, colocate_gradients_with_ops=True)
    plain = optimizer.compute_gradients(whole)
    with session() as sess:
        np.testing.assert_allclose(*sess.run([towers[0][0], plain[0][0]]), rtol=1e-5)


def test_each_tower_runs_under_its_device_and_backpropagates_there(graph: Any) -> None:
    losses = tower_outputs(squared_error, ["/device:CPU:0", "/device:CPU:1"], data())
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    for loss in losses:
        own_gradients(optimizer, tf.reduce_mean(loss), tf.trainable_variables())
    assert [loss.device for loss in losses] == ["/device:CPU:0", "/device:CPU:1"]
    backward = [op for op in graph.get_operations() if op.type == "SquareGrad" or "MatMul_grad" in op.name]
    assert {op.device for op in backward if "tower_1" in str(op.colocation_groups())} == {"/device:CPU:1"}


@pytest.mark.parametrize("reuse", [None, "auto"])
def test_variables_are_shared_in_a_fresh_scope_and_in_one_that_reuses_automatically(graph: Any, reuse: Any) -> None:
    with tf.variable_scope("model", reuse=tf.AUTO_REUSE if reuse else None):
        make_parallel(squared_error, 2, **data())
        if reuse:
            make_parallel(squared_error, 2, **data())
    assert [variable.op.name for variable in tf.global_variables()] == ["model/w"]


def test_a_structure_of_outputs_keeps_its_structure(graph: Any) -> None:
    def model(x: Any) -> Tuple[Any, Dict[str, Any]]:
        return x, {"twice": 2 * x}

    loss, metrics = make_parallel(model, 2, x=tf.constant([1.0, 2.0]))
    with session() as sess:
        np.testing.assert_array_equal(sess.run(loss), [1, 2])
        np.testing.assert_array_equal(sess.run(metrics["twice"]), [2, 4])


def test_a_batch_that_does_not_divide_is_refused_with_its_name_and_size(graph: Any) -> None:
    with pytest.raises(ValueError, match=r"x: expected a batch that divides among 5 towers, found 12 examples"):
        make_parallel(squared_error, 5, **data())


def test_a_batch_of_unknown_size_that_does_not_divide_is_refused_when_it_runs(graph: Any) -> None:
    x = tf.placeholder(tf.float32, [None])
    doubled = make_parallel(lambda x: 2 * x, 2, x=x)
    with session() as sess:
        assert sess.run(doubled, {x: [1, 2]}).tolist() == [2, 4]
        with pytest.raises(tf.errors.InvalidArgumentError, match="x: expected a batch that divides among 2 towers"):
            sess.run(doubled, {x: [1, 2, 3]})


class Pair(NamedTuple):
    ids: Any
    words: Any


SPARSE = {"indices": [[0, 1], [2, 0], [2, 2], [3, 1]], "values": [1.0, 2.0, 3.0, 4.0], "dense_shape": [4, 3]}
WORDS = [["a"], ["b", "c"], [], ["d", "e"]]


def structures(batched: bool) -> Dict[str, Any]:
    """A dense, a sparse and a ragged tensor, in a dictionary, a tuple and a named one; or one through ``tf.data``."""
    made = {
        "x": tf.range(4.0),
        "both": (tf.SparseTensor(**SPARSE), {"in": Pair(tf.range(4), tf.ragged.constant(WORDS))}),
    }
    if not batched:
        return made
    examples = tf.data.Dataset.from_tensor_slices(made)
    iterator = tf.data.make_initializable_iterator(examples.batch(4, drop_remainder=True).prefetch(2))
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    found: Dict[str, Any] = iterator.get_next()
    return found


@pytest.mark.parametrize("batched", [False, True])
def test_sparse_and_ragged_tensors_are_split_by_their_first_axis_wherever_they_are_in_a_batch(
    graph: Any, batched: bool
) -> None:
    parts = split_batch(structures(batched), 2)
    with session() as sess:
        sess.run(tf.tables_initializer())
        first, second = sess.run(parts)
    assert first["x"].tolist() == [0, 1] and second["x"].tolist() == [2, 3]
    assert first["both"][0].indices.tolist() == [[0, 1]] and first["both"][0].dense_shape.tolist() == [2, 3]
    assert second["both"][0].indices.tolist() == [[0, 0], [0, 2], [1, 1]]
    assert second["both"][0].values.tolist() == [2, 3, 4]
    assert isinstance(first["both"][1]["in"], Pair) and second["both"][1]["in"].ids.tolist() == [2, 3]
    assert [each["both"][1]["in"].words.to_list() for each in (first, second)] == [
        [[b"a"], [b"b", b"c"]],
        [[], [b"d", b"e"]],
    ]


def test_a_batch_for_one_tower_is_not_touched(graph: Any) -> None:
    batch = structures(batched=False)
    (part,) = split_batch(batch, 1)
    assert part is batch


def test_a_part_of_a_sparse_tensor_has_a_shape_as_known_as_the_whole(graph: Any) -> None:
    known = tf.SparseTensor(**SPARSE)
    unknown = tf.SparseTensor(known.indices, known.values, tf.stack([tf.placeholder(tf.int64, []), 3]))
    parts = split_batch({"known": known, "unknown": unknown}, 2)
    assert [part["known"].shape.as_list() for part in parts] == [[2, 3], [2, 3]]
    assert [part["unknown"].shape.as_list() for part in parts] == [[None, 3], [None, 3]]


@pytest.mark.parametrize("kind", ["sparse", "ragged"])
def test_sparse_and_ragged_batches_that_do_not_divide_are_refused_as_dense_ones_are(graph: Any, kind: str) -> None:
    lengths = tf.placeholder(tf.int64, [None])
    ragged = tf.RaggedTensor.from_row_lengths(tf.range(tf.reduce_sum(lengths)), lengths)
    refused = "rows: expected a batch that divides among 2 towers"
    parts = split_batch({"rows": ragged if kind == "ragged" else ragged.to_sparse()}, 2)
    with session() as sess:
        sess.run(parts, {lengths: [1, 2]})
        with pytest.raises(tf.errors.InvalidArgumentError, match=refused):
            sess.run(parts, {lengths: [1, 2, 1]})
    three = tf.ragged.constant([[1], [], [2, 3]])
    known = three if kind == "ragged" else tf.SparseTensor([[0, 1]], [1.0], [3, 3])
    with pytest.raises(ValueError, match=f"{refused}, found 3 examples"):
        split_batch({"rows": known}, 2)


def test_variables_that_towers_would_not_share_are_refused_by_name(graph: Any) -> None:
    names = iter(["first", "stray"])
    with pytest.raises(ValueError, match=r"tower 1 made variables of its own \(stray\).*same names and shapes"):
        make_parallel(lambda x: x * tf.Variable(1.0, name=next(names)), 2, x=tf.constant([1.0, 2.0]))


def test_add_gradients_takes_the_sum_of_each_variable_over_the_towers(graph: Any) -> None:
    dense, none = tf.get_variable("dense", [2]), tf.get_variable("none", [1])
    first = [(tf.constant([1.0, 2.0]), dense), (None, none)]
    second = [(tf.constant([3.0, 6.0]), dense), (None, none)]
    (total, variable), (nothing, _) = add_gradients([first, second])
    assert variable is dense and nothing is None
    with session() as sess:
        assert sess.run(total).tolist() == [4, 8]


def test_add_gradients_of_a_gathered_table_stays_sparse(graph: Any) -> None:
    table = tf.get_variable("table", [4, 1])
    rows = [tf.IndexedSlices(tf.constant([[2.0], [4.0]]), tf.constant([i, 3]), tf.constant([4, 1])) for i in (0, 1)]
    ((total, _),) = add_gradients([[(rows[0], table)], [(rows[1], table)]])
    assert isinstance(total, tf.IndexedSlices)
    with session() as sess:
        assert sess.run(tf.convert_to_tensor(total)).ravel().tolist() == [2, 2, 0, 8]


def test_average_gradients_takes_the_mean_over_all_towers_one_without_a_gradient_included(graph: Any) -> None:
    dense, none, one = (tf.get_variable(name, [2]) for name in ("dense", "none", "one"))
    first = [(tf.constant([1.0, 2.0]), dense), (None, none), (tf.constant([3.0, 5.0]), one)]
    second = [(tf.constant([3.0, 6.0]), dense), (None, none), (None, one)]
    (mean, variable), (nothing, _), (halved, _) = average_gradients([first, second])
    assert variable is dense and nothing is None
    with session() as sess:
        assert [each.tolist() for each in sess.run([mean, halved])] == [[2, 4], [1.5, 2.5]]


@pytest.mark.parametrize("towers", [1, 2, 3])
def test_average_gradients_of_a_gathered_table_stays_sparse(graph: Any, towers: int) -> None:
    table = tf.get_variable("table", [4, 1])
    rows = [tf.IndexedSlices(tf.constant([[6.0], [12.0]]), tf.constant([i, 3]), tf.constant([4, 1])) for i in range(3)]
    ((mean, _),) = average_gradients([[(each, table)] for each in rows[:towers]])
    assert isinstance(mean, tf.IndexedSlices)
    with session() as sess:
        found = sess.run(tf.convert_to_tensor(mean)).ravel().tolist()
    assert found == [*[6 / towers] * towers, *[0] * (3 - towers), 12]


def test_average_gradients_refuses_towers_that_share_no_variables(graph: Any) -> None:
    one, other = tf.get_variable("one", [1]), tf.get_variable("other", [1])
    grad = tf.constant([1.0])
    with pytest.raises(ValueError, match="found one:0, other:0; share variables by reuse"):
        average_gradients([[(grad, one)], [(grad, other)]])
    with pytest.raises(ValueError, match="found one:0, none; share variables by reuse"):
        average_gradients([[(grad, one)], []])


def test_a_worker_pulls_each_variable_once_however_many_towers_it_has(graph: Any) -> None:
    setter = [device_setter(Placement(1), worker_device("worker", 0, f"CPU:{i}")) for i in range(3)]
    with tf.variable_scope("", caching_device=worker_device("worker", 0)):
        losses = tower_outputs(squared_error, setter, data())
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    with tf.device(worker_device("worker", 0)):
        variables = tf.trainable_variables()
        pairs = [own_gradients(optimizer, tf.reduce_mean(loss), variables).pairs for loss in losses]
        ((gradient, variable),) = add_gradients(pairs)
    assert variable.device == "/job:ps/task:0/device:CPU:0"
    assert gradient.device == worker_device("worker", 0)
    ps_to_worker = [op for op in graph.get_operations() if "ps" not in op.device and variable.op in _sources(op)]
    assert [op.device for op in ps_to_worker] == [worker_device("worker", 0)]


def _sources(op: Any) -> Any:
    return [tensor.op for tensor in op.inputs]


def test_without_gpus_as_many_cpu_devices_stand_in() -> None:
    if available_gpus():
        assert device_names(1) == ["/device:GPU:0"]
    else:
        assert device_names(2) == ["/device:CPU:0", "/device:CPU:1"]
