"""An optimizer counts a step as in one process, and no other way: the servers count each step once."""

from typing import Any, Callable

import pytest

from cluster.errors import JobError
from cluster.runtime.tf_compat import tf
from cluster.updates.imported_update import ImportedUpdate, VariableSpec

CPU = "/device:CPU:0"
Descent: Any = tf.train.GradientDescentOptimizer


class Counting(Descent):  # type: ignore[misc]
    """Counts by a function, or by its base class with ``None``; then adds the step's number to what it trains."""

    def __init__(self, count: Any):
        super().__init__(0.0)
        self._count = count

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Any = None) -> Any:
        done = super().apply_gradients(grads_and_vars, None if self._count else global_step)
        with tf.control_dependencies([done]):
            counted = self._count(global_step) if self._count else done
        with tf.control_dependencies([counted]):
            number = tf.cast(tf.train.get_global_step(), tf.float32)
            return tf.group(*[each.assign_add(number * tf.ones_like(each)) for _, each in grads_and_vars])


def imported(make: Callable[[], Any]) -> ImportedUpdate:
    mirror = tf.get_variable("w", [1], use_resource=False)
    tf.train.get_or_create_global_step()
    return ImportedUpdate(make, {"w": VariableSpec(mirror, CPU, False)}, CPU)


@pytest.mark.parametrize(
    ("count", "sum_of_numbers", "is_conditional"),
    [
        (None, 5 + 6 + 7, False),
        (lambda step: step.assign_add(1), 5 + 6 + 7, False),
        (lambda step: tf.assign(step, step + 1), 5 + 6 + 7, False),
        (lambda step: tf.cond(step < 5, lambda: tf.no_op(), lambda: step.assign_add(1).op), 4 + 6 + 7, True),
        (lambda step: tf.no_op(), 4 + 5 + 6, False),
    ],
    ids=["by its base class", "by itself", "by a sum", "but one step", "not at all"],
)
def test_what_follows_the_update_sees_the_number_that_the_optimizer_has_counted(
    count: Any, sum_of_numbers: float, is_conditional: bool
) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        found = imported(lambda: Counting(count))
        assert found.may_leave_out == is_conditional
        (w,) = found.masters.values()
        update = found.apply_gradients([(tf.zeros([1]), w)])
        session.run([tf.assign(w, [0.0]), tf.assign(found.global_step, 4)])
        for step in (4, 5, 6):
            session.run(update)
            assert session.run(found.global_step) == step  # others read it, and the step is not over
            session.run(tf.assign_add(found.global_step, 1))
        assert session.run(w).tolist() == [sum_of_numbers]


def test_a_rate_that_decays_by_the_step_is_that_of_the_servers_step() -> None:
    def make() -> Any:
        return Descent(tf.cast(tf.train.get_or_create_global_step(), tf.float32))

    with tf.Graph().as_default(), tf.Session() as session:
        found = imported(make)
        (w,) = found.masters.values()
        update = found.apply_gradients([(tf.ones([1]), w)])
        session.run([tf.assign(w, [0.0]), tf.assign(found.global_step, 7)])
        session.run(update)
        assert session.run(w).tolist() == [-7.0]


@pytest.mark.parametrize(
    "count",
    [
        lambda step: step.assign_add(2),
        lambda step: step.assign(5),
        lambda step: tf.assign(step, tf.cast(tf.train.get_global_step().graph.seed or 0, tf.int64) + 1),
        lambda step: tf.group(step.assign_add(1), step.assign_add(1)),
        lambda step: tf.while_loop(lambda i: i < 2, lambda i: i + tf.cast(step.assign_add(1), tf.int32), [0]),
    ],
    ids=["by two", "to a number", "from another number", "twice", "in a loop"],
)
def test_another_way_to_count_is_refused(count: Any) -> None:
    with tf.Graph().as_default(), pytest.raises(
        JobError, match=r"^optimizer Counting \(.*py:\d+\): expected apply_gradients to count"
    ):
        imported(lambda: Counting(count))


def test_a_method_that_takes_no_global_step_is_called_without() -> None:
    class Short(Descent):  # type: ignore[misc]
        def apply_gradients(self, grads_and_vars: Any) -> Any:
            return super().apply_gradients(grads_and_vars)

    with tf.Graph().as_default():
        imported(lambda: Short(0.1))
