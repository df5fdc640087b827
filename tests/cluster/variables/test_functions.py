"""A change of a variable is found in the body of whatever function has it; a read is none."""

from typing import Any, Callable, Iterator

import pytest

from cluster.runtime.tf_compat import tf
from cluster.variables.uses import writes


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def variable() -> Any:
    return tf.get_variable("v", [], use_resource=True, initializer=tf.zeros_initializer())


@pytest.fixture
def control_flow_2() -> Iterator[None]:
    tf.enable_control_flow_v2()
    yield
    tf.disable_control_flow_v2()


def in_function(body: Callable[[], Any]) -> Any:
    return tf.function(body, autograph=False)()


def in_nested_functions(body: Callable[[], Any]) -> Any:
    return in_function(lambda: 2 * in_function(body))


def in_defun(body: Callable[[], Any]) -> Any:
    from tensorflow.python.framework.function import Defun  # not public any more, but in graphs that are

    def added(x: Any) -> Any:
        return x + body()

    return Defun(tf.float32)(added)(tf.constant(2.0))


def in_branch(body: Callable[[], Any]) -> Any:
    return tf.cond(tf.placeholder(tf.bool, []), body, lambda: 0.0)


def in_one_of_many(body: Callable[[], Any]) -> Any:
    return tf.switch_case(tf.placeholder(tf.int32, []), [lambda: 1.0, lambda: 2.0, body])


def in_loop(body: Callable[[], Any]) -> Any:
    return tf.while_loop(lambda index, _: index < 3, lambda index, x: (index + 1, x + body()), [0, 0.0])[1]


ways = pytest.mark.parametrize("way", [in_function, in_nested_functions, in_defun, in_branch, in_one_of_many, in_loop])


@ways
@pytest.mark.usefixtures("control_flow_2")
def test_a_change_is_found_as_the_call_of_the_function_and_a_read_is_not(
    way: Callable[[Callable[[], Any]], Any], variable: Any
) -> None:
    read = way(lambda: 3 * variable)
    assert not writes(variable)
    changed = way(lambda: variable.assign_add(1.0))
    (call,) = writes(variable)
    assert call in {op for each in (read, changed) for op in _behind(each)} - set(_behind(read))


def _behind(tensor: Any) -> Any:
    return [tensor.op, *(each.op for each in tensor.op.inputs)]


@pytest.mark.usefixtures("control_flow_2")
def test_the_gradient_of_a_function_that_reads_a_variable_changes_none(variable: Any) -> None:
    loss = in_function(lambda: variable**2) + in_branch(lambda: variable * 3) + in_loop(lambda: variable + 1.0)
    assert tf.gradients(loss, [variable])[0] is not None
    assert not writes(variable)


def test_of_two_variables_that_a_function_takes_only_the_one_that_it_assigns_is_changed(variable: Any) -> None:
    other = tf.get_variable("other", [], use_resource=True)
    in_function(lambda: variable.assign(other * 2))
    assert len(writes(variable)) == 1 and not writes(other)


def test_a_dataset_that_reads_a_variable_changes_none(variable: Any) -> None:
    tf.data.Dataset.range(3).map(lambda each: tf.cast(each, tf.float32) + variable)
    assert not writes(variable)
