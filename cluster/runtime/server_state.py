"""Variables, locks and queues that servers hold in addition to the model, with few operations each.

A variable that is declared here is one operation. TensorFlow's own variable is six, most of them unused. Many queues of
one server need one operation, a call of a function: the operations inside the function are not operations of the graph.
"""

from typing import Any, Callable, List, Sequence, Tuple

from tensorflow.core.framework.attr_value_pb2 import AttrValue
from tensorflow.core.framework.variable_pb2 import VariableDef

from cluster.runtime.tensors import cond
from cluster.runtime.tf_compat import tf


def kept(name: str, shape: Sequence[int], dtype: Any, first: Any) -> Any:
    """Return a variable in no collection: neither saved nor initialised with the model, and not trained.

    Args:
      first: the value that the initializer gives to each element.
    """
    return tf.get_variable(
        name, list(shape), dtype, tf.constant_initializer(first), trainable=False, collections=[], use_resource=False
    )


def copied(variable: Any) -> Any:
    """Return a copy of the variable's value, on its device, in separate memory.

    Without the copy, the value read from a non-resource variable would change with the variable.
    """
    with tf.device(None), tf.device(variable.device):
        # A gather creates a new tensor, of any type. DeepCopy supports no unsigned or quantized numbers.
        return tf.gather(tf.expand_dims(variable.read_value(), 0), 0)


def locked(mutex: Any, needed: Sequence[Any], work: Callable[[], List[Any]]) -> Tuple[Any, List[Any]]:
    """Create operations that only one step at a time runs, on the current device.

    The lock opens when the operations are done, or when their step is abandoned. TensorFlow also opens the lock if a
    step is abandoned while it waits for the lock; then two steps may run the operations.

    Args:
      needed: tensors used by ``work`` that are fed, or that a worker computes in this step. The step waits for these
        tensors before it takes the lock: a closed session may leave a step that waits for its inputs for ever.
      work: returns the tensors or operations that it creates.

    Returns:
      The operation that opens the lock, and the result of ``work``.
    """
    with tf.control_dependencies(needed):
        lock = tf.raw_ops.MutexLock(mutex=mutex)
    with tf.control_dependencies([lock]):
        made = work()
    with tf.control_dependencies(made):
        return tf.raw_ops.ConsumeMutexLock(mutex_lock=lock), made


def take_newest(queue: Any) -> Any:
    """Wait for an element of the queue, take all elements, and return the last."""
    return queue.dequeue_many(tf.maximum(queue.size(), 1))[-1]


def take_all(queue: Any) -> Any:
    """Take and return all elements of the queue, perhaps none, without waiting."""
    return queue.dequeue_many(queue.size())


class ManyQueues:
    """Operations that fill or empty ``number`` queues of int64 scalars at once, in the current graph.

    Both operations are created on the current device, which must be the device of the queues. The handles of the queues
    are one tensor.
    """

    def __init__(self, number: int):
        handles = tf.TensorSpec([number], tf.resource)
        self._put = tf.wrap_function(_put, [handles, tf.TensorSpec([None], tf.int64)])
        self._empty = tf.wrap_function(_empty, [handles])

    def put(self, handles: Any, tokens: Any) -> Any:
        """Return the operation that puts all ``tokens``, int64 [n], into each queue."""
        return self._put(handles, tokens).op

    def empty(self, handles: Any) -> Any:
        """Return the operation that takes all elements of each queue, without waiting."""
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


MOST_ROWS = 1 << 30  # rows of a reserved variable, in the graph's view


def declare(name: str, shape: Tuple[int, ...], dtype: Any, shared_name: str = "") -> Any:
    """Create the operation of a variable on the current device, without a value.

    Args:
      shared_name: the name of the variable on servers, whatever its name in a graph; by default the name in the graph.
    """
    with tf.name_scope(None), tf.control_dependencies(None):
        return tf.raw_ops.VariableV2(shape=shape, dtype=dtype, name=name, shared_name=shared_name)


def variable_of(held: Any, initializer: Any) -> Any:
    """Return the variable of a declared operation, to which the operation ``initializer`` gives its first value.

    The variable is in no collection, and not trainable.
    """
    definition = VariableDef(variable_name=held.name, snapshot_name=held.name, initializer_name=initializer.name)
    made = tf.Variable(variable_def=definition, use_resource=False)
    made._trainable = False
    return made


def count_from_zero(name: str) -> Any:
    """Return an int64 counter, whose first value is 0."""
    held = declare(name, (), tf.int64)
    return variable_of(held, tf.assign(held, tf.zeros([], tf.int64)).op)


def reserve(name: str, width: Sequence[int], dtype: Any, rows: Any) -> Any:
    """Return a variable whose initializer only reserves memory, and does so only once.

    Linux provides the pages as they are written. A second reservation would make TensorFlow copy the new memory into
    the old, and so write all pages.

    Args:
      width: the shape of a row.
      rows: the number of rows, an int32 scalar.
    """
    held = declare(name, (MOST_ROWS, *width), dtype)

    def make() -> Any:
        with tf.control_dependencies([_hand_over(held, tf.stack([rows, *width]))]):
            return tf.constant(True)

    has_memory = tf.raw_ops.IsVariableInitialized(ref=held)
    return variable_of(held, cond(has_memory, lambda: tf.constant(True), make).op)


def _hand_over(held: Any, shape: Any) -> Any:
    """Return the operation that gives a variable new memory of a shape."""
    memory = tf.raw_ops.Empty(shape=shape, dtype=held.dtype.base_dtype)
    assign = tf.assign(held, memory, validate_shape=False).op
    # Otherwise TensorFlow requires memory for network cards and GPUs, and copies. Its graph optimizer sets this, too.
    assign._set_attr("_grappler_relax_allocator_constraints", AttrValue(b=True))
    return assign
