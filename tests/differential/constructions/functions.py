"""The functions and branches within which authors compute something, or change a variable."""

import contextlib
from typing import Any, Callable, Iterator

import tensorflow.compat.v1 as tf
from tensorflow.python.framework.function import Defun

from tests.differential.constructions.axes import CONTROL_FLOW_V2

Body = Callable[[], Any]


def called(inside: str, body: Body) -> Any:
    """A number of float32 that ``body`` returns within such a function, once, or where it is a loop twice."""
    name = inside.replace("_v2", "")
    if name == "function":
        return tf.function(body, autograph=False)()
    if name == "defun":
        return Defun()(body)()
    if name == "cond":
        return tf.cond(tf.train.get_global_step() < 100, body, lambda: tf.constant(0.0))
    if name == "while":
        return tf.while_loop(lambda turn, _: turn < 2, lambda turn, _: (turn + 1, body()), [0, tf.constant(0.0)])[1]
    return body()


def computed(inside: str, of: Callable[[Any], Any], value: Any) -> Any:
    """What ``of`` makes of a tensor within such a function; its derivative is a constant times that of ``of``."""
    if inside == "function":
        return tf.function(of, autograph=False)(value)
    if inside == "defun":
        return Defun(tf.float32)(of)(value)
    if inside == "custom_gradient":
        return _doubly_differentiated(of)(value)
    return called(inside, lambda: of(value))


def _doubly_differentiated(of: Callable[[Any], Any]) -> Any:
    @tf.custom_gradient
    def once(value: Any) -> Any:
        result = of(value)
        return result, lambda above: 2.0 * above * tf.gradients(result, value)[0]

    return once


def when_differentiated(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same value, whose gradient ``change`` makes of the one from above."""

    @tf.custom_gradient
    def same(value: Any) -> Any:
        return tf.identity(value), change

    return same(value)


@contextlib.contextmanager
def control_flow_of(inside: str) -> Iterator[None]:
    """TensorFlow's newer control flow for a construction that asks for it, as at the head of an author's file."""
    if inside not in CONTROL_FLOW_V2:
        yield
        return
    tf.enable_control_flow_v2()
    try:
        yield
    finally:
        tf.disable_control_flow_v2()
