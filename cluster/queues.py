"""Taking everything that lies in a queue."""

from typing import Any

from cluster.engine import tf


def newest(queue: Any) -> Any:
    """Waits until there is something, and takes all that is there; the last of it."""
    return queue.dequeue_many(tf.maximum(queue.size(), 1))[-1]


def emptied(queue: Any) -> Any:
    """Takes what is there, if anything; waits for nothing."""
    return queue.dequeue_many(queue.size())
