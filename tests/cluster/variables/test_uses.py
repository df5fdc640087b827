"""What a graph does with a variable is read from the graph: who takes its rows, its value, or changes it."""

from typing import Any, Callable, Iterator, List

import pytest

from cluster.runtime.tf_compat import tf
from cluster.variables.uses import ancestors, finish_turns, takes_rows, uses, ways_out, writes
from tests.support.waiting import let_pass

IDS = [1, 2, 2]


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture(params=[False, True], ids=["reference", "resource"])
def variable(request: Any) -> Any:
    return tf.get_variable("v", [10, 4], use_resource=request.param)


def used_by(variable: Any) -> List[str]:
    return sorted(op.type for op, _ in uses(variable))


def row_takers(variable: Any) -> List[bool]:
    """For each use of the variable, whether it takes rows."""
    return [takes_rows(op, tensor) for op, tensor in uses(variable)]


def test_a_variable_that_is_only_made_has_no_use(variable: Any) -> None:
    assert used_by(variable) == []


def test_its_initializer_the_question_for_a_value_and_its_shape_are_no_uses(variable: Any) -> None:
    tf.is_variable_initialized(variable)
    tf.shape(variable)
    assert used_by(variable) == []


def test_what_stands_behind_any_number_of_plain_reads_is_a_use(variable: Any) -> None:
    tf.negative(tf.identity(tf.identity(variable.read_value())))
    tf.abs(variable)
    assert used_by(variable) == ["Abs", "Neg"]


@pytest.mark.parametrize("take", [tf.gather, tf.nn.embedding_lookup])
def test_gathers_and_lookups_take_rows(variable: Any, take: Callable[..., Any]) -> None:
    take(variable, IDS)
    assert row_takers(variable) == [True]


def test_so_does_a_lookup_that_adds_rows_up(variable: Any) -> None:
    ids = tf.SparseTensor([[0, 0], [1, 0]], tf.constant([3, 4], tf.int64), [2, 1])
    tf.nn.embedding_lookup_sparse(variable, ids, None, combiner="sum")
    assert row_takers(variable) == [True]


def test_a_gather_along_another_axis_or_of_a_batch_takes_no_rows(variable: Any) -> None:
    tf.gather(variable, IDS, axis=1)
    tf.gather(variable, [[0]] * 10, batch_dims=1)
    assert row_takers(variable) == [False, False]


def test_nor_does_one_whose_axis_is_not_known(variable: Any) -> None:
    tf.gather(variable, IDS, axis=tf.placeholder(tf.int32, []))
    assert row_takers(variable) == [False]


def test_nor_one_that_takes_others_rows_by_the_variables_values() -> None:
    ids = tf.get_variable("ids", [2], tf.int32, tf.zeros_initializer(), use_resource=False)
    tf.gather(tf.constant([1.0, 2.0]), ids)
    assert row_takers(ids) == [False]


def test_nor_one_in_a_loop_or_a_branch_as_it_cannot_be_moved(variable: Any) -> None:
    def more(index: Any, total: Any) -> Any:
        return index + 1, total + tf.reduce_sum(tf.gather(variable, [index]))

    tf.while_loop(lambda index, _: index < 2, more, (0, 0.0))
    tf.cond(tf.placeholder(tf.bool, []), lambda: tf.gather(variable, IDS), lambda: tf.zeros([3, 4]))
    assert not any(row_takers(variable))


def test_whatever_changes_a_variable_is_found_and_its_initializer_is_no_change(variable: Any) -> None:
    assert not writes(variable)
    tf.assign(variable, tf.zeros([10, 4]))
    tf.assign_add(variable, tf.ones([10, 4]))
    tf.scatter_update(variable, [0], tf.ones([1, 4]))
    tf.train.GradientDescentOptimizer(0.1).apply_gradients([(tf.ones([10, 4]), variable)])
    assert len(writes(variable)) == 4


def test_a_change_of_a_slice_in_a_branch_or_in_a_loop_is_found_with_its_way_in_and_out(variable: Any) -> None:
    in_branch = tf.cond(tf.constant(True), lambda: tf.assign_add(variable, tf.ones([10, 4])), lambda: variable + 0.0)
    in_loop = tf.while_loop(
        lambda index, _: index < 3,
        lambda index, _: (index + 1, tf.cond(index < 2, lambda: tf.assign_add(variable, in_branch), lambda: in_branch)),
        [0, in_branch],
    )[1]
    with tf.control_dependencies([in_loop]):
        slice_of = tf.identity(variable[0].assign(tf.zeros([4])))
    step = ancestors([slice_of])
    found = writes(variable)
    assert len(found) == 3
    assert {way.type for way in found.values()} & {"Switch", "RefSwitch"} and {*found.values()} <= step
    assert all(way.inputs[0] is variable.op.outputs[0] for way in found.values())
    for op in found:
        assert ways_out(op, step) and all(op in ancestors([out]) for out in ways_out(op, step))


def slowly(turn: int) -> int:
    """Returns the number of a turn, the first one late."""
    if turn == 0:
        let_pass(0.3)
    return turn


@pytest.mark.parametrize("as_functions", [False, True], ids=["operations", "functions"])
def test_behind_a_loop_are_the_changes_of_all_of_its_turns(as_functions: bool) -> None:
    n = tf.get_variable("n", [], initializer=tf.zeros_initializer(), trainable=False, use_resource=True)
    (tf.enable_control_flow_v2 if as_functions else tf.disable_control_flow_v2)()

    def turn(number: Any, _: Any) -> Any:
        with tf.control_dependencies([tf.py_func(slowly, [number], tf.int32)]):
            added = n.assign_add(1.0, read_value=False)
        with tf.control_dependencies([added]):
            done = tf.constant(0.0)
        return number + 1, done

    try:
        last = tf.while_loop(lambda number, _: number < 3, turn, [0, 0.0])[1]
    finally:
        tf.disable_control_flow_v2()
    (change,) = writes(n)
    finish_turns(change)
    with tf.control_dependencies(ways_out(change, ancestors([last]))):
        read = n.read_value()
    with tf.Session() as session:
        session.run(n.initializer)
        assert session.run(read) == 3.0


def test_behind_a_branch_that_is_a_function_is_its_change() -> None:
    n = tf.get_variable("n", [], initializer=tf.zeros_initializer(), trainable=False, use_resource=True)
    tf.enable_control_flow_v2()

    def taken() -> Any:
        with tf.control_dependencies([tf.py_func(slowly, [0], tf.int32)]):
            added = n.assign_add(1.0, read_value=False)
        with tf.control_dependencies([added]):
            return tf.identity(0.0)

    try:
        last = tf.cond(tf.random.uniform([]) < 2.0, taken, lambda: tf.constant(0.0))
    finally:
        tf.disable_control_flow_v2()
    (change,) = writes(n)
    with tf.control_dependencies(ways_out(change, ancestors([last]))):
        read = n.read_value()
    with tf.Session() as session:
        session.run(n.initializer)
        assert session.run(read) == 1.0


def test_reading_a_variable_into_another_changes_only_the_other(variable: Any) -> None:
    other = tf.get_variable("other", [10, 4], use_resource=False)
    tf.assign(other, variable)
    assert not writes(variable) and len(writes(other)) == 1


def test_ancestors_are_all_that_must_run_control_inputs_included() -> None:
    first, beside = tf.constant(1.0, name="first"), tf.constant(2.0, name="beside")
    with tf.control_dependencies([tf.constant(3.0, name="before")]):
        last = tf.identity(first, name="last")
    assert beside.op not in ancestors([last])
    assert {op.name for op in ancestors([last])} == {"first", "before", "last"}


def test_ancestors_of_operations_of_sparse_gradients_and_of_nothing_are_found() -> None:
    values, rows = tf.constant([[1.0]], name="values"), tf.constant([0], name="rows")
    found = ancestors([None, tf.IndexedSlices(values, rows), tf.no_op(name="done")])
    assert {op.name for op in found} == {"values", "rows", "done"}
