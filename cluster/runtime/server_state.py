"""Take everything from a queue, and fill or empty many queues with one operation.

The queues are on one server. A function's operations are no operations of the graph, whose calls of the function may
be many.
"""

from typing import Any, Callable, List

from cluster.runtime.tf_compat import tf


def take_newest(queue: Any) -> Any:
    """Wait for an element, take all elements of the queue, and return the last."""
    return queue.dequeue_many(tf.maximum(queue.size(), 1))[-1]


def take_all(queue: Any) -> Any:
    """Take all elements of the queue, if there are any, and wait for nothing."""
    return queue.dequeue_many(queue.size())


class ManyQueues:
    """Fill or empty ``number`` queues of int64 scalars at once, in the current graph.

    Both operations are made on the current device, that of the queues. The handles of the queues are one tensor.
    """

    def __init__(self, number: int):
        handles = tf.TensorSpec([number], tf.resource)
        self._put = tf.wrap_function(_put, [handles, tf.TensorSpec([None], tf.int64)])
        self._empty = tf.wrap_function(_empty, [handles])

    def put(self, handles: Any, tokens: Any) -> Any:
        """Make the operation that puts all ``tokens``, int64 [n], into each queue."""
        return self._put(handles, tokens).op

    def empty(self, handles: Any) -> Any:
        """Make the operation that takes from each queue what is there, and waits for nothing."""
        return self._empty(handles)[0].op


def _put(handles: Any, tokens: Any) -> Any:
    put = _of_each(handles, lambda queue: tf.raw_ops.QueueEnqueueManyV2(handle=queue, components=[tokens]))
    with tf.control_dependencies(put):
        return tf.identity(tokens)


def _empty(handles: Any) -> Any:
    def emptied_of(queue: Any) -> Any:
        number = tf.raw_ops.QueueSizeV2(handle=queue)
        return tf.raw_ops.QueueDequeueManyV2(handle=queue, n=number, component_types=[tf.int64])[0]

    return _of_each(handles, emptied_of)


def _of_each(handles: Any, do: Callable[[Any], Any]) -> List[Any]:
    return [do(handle) for handle in tf.unstack(handles)]
