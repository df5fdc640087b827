"""Variables, locks and queues that servers keep beside the model, each of few operations.

A variable that is declared here is one operation: TensorFlow's own is six, most of which nothing uses. Many queues of
one server take one operation: a function's operations are no operations of the graph, whose calls of the function may
be many.
"""

from typing import Any, Callable, List, Sequence, Tuple

from tensorflow.core.framework.attr_value_pb2 import AttrValue
from tensorflow.core.framework.variable_pb2 import VariableDef

from cluster.runtime.tensors import cond
from cluster.runtime.tf_compat import tf


def kept(name: str, shape: Sequence[int], dtype: Any, first: Any) -> Any:
    """Return a variable in no collection: neither saved nor initialised with the model, and not trained.

    Args:
      first: the value of each element that its initializer gives.
    """
    return tf.get_variable(
        name, list(shape), dtype, tf.constant_initializer(first), trainable=False, collections=[], use_resource=False
    )


def locked(mutex: Any, needed: Sequence[Any], work: Callable[[], List[Any]]) -> Tuple[Any, List[Any]]:
    """Make operations that one step at a time runs, on the current device.

    The lock opens when they are done, or their step is given up. TensorFlow opens it also for a step that is given up
    while it waits: two may be inside then.

    Args:
      needed: what of ``work`` is fed, or computed by a worker in this step. It is here before the step has the
        lock: a session that closes may leave a step that waits for its inputs for ever.
      work: returns the tensors or operations that it makes.

    Returns:
      The operation that opens the lock, and what ``work`` returned.
    """
    with tf.control_dependencies(needed):
        lock = tf.raw_ops.MutexLock(mutex=mutex)
    with tf.control_dependencies([lock]):
        made = work()
    with tf.control_dependencies(made):
        return tf.raw_ops.ConsumeMutexLock(mutex_lock=lock), made


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


MOST_ROWS = 1 << 30  # rows of a variable that is reserved, as graphs have it


def declare(name: str, shape: Tuple[int, ...], dtype: Any, shared_name: str = "") -> Any:
    """Make the operation of a variable on the current device; nothing gives it a value.

    Args:
      shared_name: what servers call it, whatever its name in a graph; without it they go by that name.
    """
    with tf.name_scope(None), tf.control_dependencies(None):
        return tf.raw_ops.VariableV2(shape=shape, dtype=dtype, name=name, shared_name=shared_name)


def variable_of(held: Any, initializer: Any) -> Any:
    """Return the variable of what was declared, to which the operation ``initializer`` gives its first value.

    It is in no collection, and not trainable.
    """
    definition = VariableDef(variable_name=held.name, snapshot_name=held.name, initializer_name=initializer.name)
    made = tf.Variable(variable_def=definition, use_resource=False)
    made._trainable = False
    return made


def count_from_zero(name: str) -> Any:
    """Return an int64 counter."""
    held = declare(name, (), tf.int64)
    return variable_of(held, tf.assign(held, tf.zeros([], tf.int64)).op)


def reserve(name: str, width: Sequence[int], dtype: Any, rows: Any) -> Any:
    """Return a variable of ``rows`` rows, int32, whose initializer gives it memory, writes nothing, and runs once.

    Linux gives it pages as they are written. A second time TensorFlow would copy the new memory into the first, and so
    write all of it.
    """
    held = declare(name, (MOST_ROWS, *width), dtype)

    def make() -> Any:
        with tf.control_dependencies([_hand_over(held, tf.stack([rows, *width]))]):
            return tf.constant(True)

    has_memory = tf.raw_ops.IsVariableInitialized(ref=held)
    return variable_of(held, cond(has_memory, lambda: tf.constant(True), make).op)


def _hand_over(held: Any, shape: Any) -> Any:
    """Make the operation that lets a variable have new memory of a shape."""
    memory = tf.raw_ops.Empty(shape=shape, dtype=held.dtype.base_dtype)
    assign = tf.assign(held, memory, validate_shape=False).op
    # Without it TensorFlow wants memory for network cards and GPUs, and copies. Its optimizer of graphs sets it, too.
    assign._set_attr("_grappler_relax_allocator_constraints", AttrValue(b=True))
    return assign
