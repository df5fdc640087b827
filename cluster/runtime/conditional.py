"""A choice between two branches, the same whichever control flow the job's file has switched on.

``tf.enable_control_flow_v2`` makes a branch a function, which gets the values of variables. They are read before it is
known which branch is taken, even where the branch is only for variables that have a value. And no function assigns to
a variable.
"""

import contextlib
import threading
from typing import Any, Callable, Iterator

from cluster.runtime.tf_compat import tf

_ONE_AT_A_TIME = threading.RLock()  # the switch is one for all threads


def cond(condition: Any, if_true: Callable[[], Any], if_false: Callable[[], Any]) -> Any:
    """Return what ``tf.cond`` does, whose branches are operations of the current graph."""
    with _without_functions():
        return tf.cond(condition, if_true, if_false)


@contextlib.contextmanager
def _without_functions() -> Iterator[None]:
    with _ONE_AT_A_TIME:
        with tf.Graph().as_default():  # inside a function the answer would be of the function
            is_on = tf.control_flow_v2_enabled()
        tf.disable_control_flow_v2()
        try:
            yield
        finally:
            if is_on:
                tf.enable_control_flow_v2()
