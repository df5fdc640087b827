"""A ``minimize`` that only hands its arguments on may be left out; every other one is noticed."""

from typing import Any

import pytest

from cluster.runtime.tf_compat import tf
from cluster.updates.optimizer_gradients import hands_on

Descent: Any = tf.train.GradientDescentOptimizer


class Decoupled(Descent):  # type: ignore[misc]
    """Hands on by name, and keeps which variables decay, as contrib's optimizers with weight decay do."""

    def minimize(
        self, loss: Any, global_step: Any = None, var_list: Any = None, name: Any = None, decay_var_list: Any = None
    ) -> Any:
        self._decay_var_list = set(decay_var_list) if decay_var_list else False
        return super().minimize(loss, global_step=global_step, var_list=var_list, name=name)


class Starred(Descent):  # type: ignore[misc]
    """Hands on whatever comes."""

    def minimize(self, *args: Any, **kwargs: Any) -> Any:
        return super().minimize(*args, **kwargs)


class AfterUpdates(Descent):  # type: ignore[misc]
    """Lets a step wait for the model's updates."""

    def minimize(self, *args: Any, **kwargs: Any) -> Any:
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            return super().minimize(*args, **kwargs)


class AfterSomething(Descent):  # type: ignore[misc]
    """Lets a step wait for an operation of its own."""

    def __init__(self, rate: float):
        super().__init__(rate)
        self._something = tf.no_op()

    def minimize(self, *args: Any, **kwargs: Any) -> Any:
        with tf.control_dependencies([self._something]):
            return super().minimize(*args, **kwargs)


class Adding(Descent):  # type: ignore[misc]
    """Changes the loss."""

    def minimize(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        return super().minimize(loss + 1.0, *args, **kwargs)


class Shortening(Descent):  # type: ignore[misc]
    """Trains less."""

    def minimize(self, loss: Any, global_step: Any = None, var_list: Any = None) -> Any:
        return super().minimize(loss, global_step, var_list[1:])


class NotCounting(Descent):  # type: ignore[misc]
    """Forgets the step."""

    def minimize(self, loss: Any, global_step: Any = None, var_list: Any = None) -> Any:
        return super().minimize(loss, None, var_list)


class Keeping(Descent):  # type: ignore[misc]
    """Keeps the loss for itself."""

    def minimize(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        self._loss = loss
        return super().minimize(loss, *args, **kwargs)


class DoingMore(Descent):  # type: ignore[misc]
    """Adds an operation to the step."""

    def minimize(self, *args: Any, **kwargs: Any) -> Any:
        super().minimize(*args, **kwargs)
        return tf.no_op()


class MakingOnTheWay(Descent):  # type: ignore[misc]
    """Makes an operation that nobody is shown."""

    def minimize(self, *args: Any, **kwargs: Any) -> Any:
        tf.get_variable("a", [], initializer=tf.zeros_initializer())
        return super().minimize(*args, **kwargs)


class Elsewhere(Descent):  # type: ignore[misc]
    """Leaves it to another one."""

    def minimize(self, *args: Any, **kwargs: Any) -> Any:
        return Descent(0.5).minimize(*args, **kwargs)


class ByHand(Descent):  # type: ignore[misc]
    """Calls both halves."""

    def minimize(self, loss: Any, global_step: Any = None, var_list: Any = None) -> Any:
        return self.apply_gradients(self.compute_gradients(loss, var_list), global_step)


@pytest.mark.parametrize("kind", [Decoupled, Starred, AfterUpdates])
def test_one_that_hands_on_is_known(kind: Any) -> None:
    with tf.Graph().as_default() as graph:
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.no_op())
        optimizer = kind(0.1)
        number = len(graph.get_operations())
        assert hands_on(optimizer)
        assert len(graph.get_operations()) <= number + 1  # a look at what the step would wait for
        assert getattr(optimizer, "_decay_var_list", False) is False


@pytest.mark.parametrize(
    "kind",
    [AfterSomething, Adding, Shortening, NotCounting, Keeping, DoingMore, MakingOnTheWay, Elsewhere, ByHand],
)
def test_one_that_does_more_is_noticed(kind: Any) -> None:
    own = tf.train.Optimizer.minimize
    with tf.Graph().as_default():
        assert not hands_on(kind(0.1))
    assert tf.train.Optimizer.minimize is own
