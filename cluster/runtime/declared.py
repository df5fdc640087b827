"""A variable of the servers that is one operation: TensorFlow's own is six, of which nobody uses most."""

from typing import Any, Sequence, Tuple

from tensorflow.core.framework.attr_value_pb2 import AttrValue
from tensorflow.core.framework.variable_pb2 import VariableDef

from cluster.runtime.conditional import cond
from cluster.runtime.tf_compat import tf

MOST = 1 << 30  # rows of a variable that is reserved, as graphs have it


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
    held = declare(name, (MOST, *width), dtype)

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
