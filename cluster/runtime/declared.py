"""A variable of the servers that is one operation: TensorFlow's own is six, of which nobody uses most."""

from typing import Any, Tuple

from tensorflow.core.framework.variable_pb2 import VariableDef

from cluster.runtime.tf_compat import tf


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
