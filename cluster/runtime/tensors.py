"""Small functions on tensors, with few operations each: fingerprints, constants, calls, a choice of branches.

After ``tf.enable_control_flow_v2`` a branch is a function, and variables reach it by their values. TensorFlow reads the
values before it knows the taken branch, even where the branch is taken only if a variable has a value. And a function
cannot assign to a variable. So ``cond`` behaves the same whichever control flow the job's file has switched on.
"""

import contextlib
import threading
from typing import Any, Callable, Dict, Iterator, Tuple

from cluster.runtime.tf_compat import tf

_STRINGS = (1 << 63) - 1  # the number of fingerprints of strings


def identities(ids: Any) -> Any:
    """Return integers or strings of any shape as int64; a string as its 63-bit fingerprint."""
    if ids.dtype == tf.string:
        return tf.strings.to_hash_bucket_fast(ids, _STRINGS)
    return tf.cast(ids, tf.int64)


def where_true(mask: Any) -> Any:
    """Return the indices of the true values of a mask [n], int64 [m]. ``tf.boolean_mask`` needs more operations."""
    return tf.reshape(tf.where(mask), [-1])


def call(name: str, compute: Callable[..., Any], *tensors: Any) -> Any:
    """Return ``compute(*tensors)``, computed by a function in the graph; calls with the same name and types share it.

    A call is one operation, on the current device. ``compute`` may use only its arguments, and returns one tensor.
    """
    specs = tuple(tf.TensorSpec([None] * (each.shape.ndims or 0), each.dtype.base_dtype) for each in tensors)
    known = _functions(tf.get_default_graph())
    if (name, specs) not in known:
        with tf.device(None), tf.control_dependencies(None):
            known[name, specs] = tf.wrap_function(compute, list(specs))
    return known[name, specs](*tensors)


def _functions(graph: Any) -> Dict[Tuple[str, Any], Callable[..., Any]]:
    held = graph.get_collection_ref("functions_by_name")
    if not held:
        held.append({})
    found: Dict[Tuple[str, Any], Callable[..., Any]] = held[0]
    return found


class Constants:
    """The constants of one graph."""

    def __init__(self) -> None:
        self._made: Dict[Tuple[int, str], Any] = {}

    def scalar(self, value: int, device: str) -> Any:
        """Return ``value`` as an int32 scalar on ``device``; the constant has no control inputs."""
        if (value, device) not in self._made:
            with tf.control_dependencies(None), tf.device(device):
                self._made[value, device] = tf.constant(value)
        return self._made[value, device]


_ONE_SWITCH_AT_A_TIME = threading.RLock()  # all threads share the switch


def cond(condition: Any, if_true: Callable[[], Any], if_false: Callable[[], Any]) -> Any:
    """Return the result of ``tf.cond``, with branches whose operations are in the current graph."""
    with _branches_in_the_graph():
        return tf.cond(condition, if_true, if_false)


@contextlib.contextmanager
def _branches_in_the_graph() -> Iterator[None]:
    with _ONE_SWITCH_AT_A_TIME:
        with tf.Graph().as_default():  # inside a function the answer would be about the function
            is_on = tf.control_flow_v2_enabled()
        tf.disable_control_flow_v2()
        try:
            yield
        finally:
            if is_on:
                tf.enable_control_flow_v2()
