"""The global step on the servers: the one that counts. A worker's graph has a variable of its own for it beside it."""

import contextlib
from typing import Any, Iterator

from cluster.runtime.devices import ps_device
from cluster.runtime.server_state import kept
from cluster.runtime.tf_compat import tf
from cluster.variables.masters import SCOPE


def servers_step() -> Any:
    """Make the servers' global step in the current graph."""
    with tf.device(ps_device(0)):
        return kept(f"{SCOPE}/global_step", [], tf.int64, 0)


@contextlib.contextmanager
def counting_by(step: Any) -> Iterator[None]:
    """Let TensorFlow find ``step`` as the global step: a learning rate that is applied on the servers counts by it."""
    steps = tf.get_collection_ref(tf.GraphKeys.GLOBAL_STEP)
    before, steps[:] = list(steps), [step]
    try:
        yield
    finally:
        steps[:] = before
