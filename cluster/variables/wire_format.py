"""The number formats in which gradients and variables are sent (``train.wire``).

Servers and workers compute in float32. float16 and bfloat16 halve the bytes in both directions. bfloat16 has the range
of float32. Rounding changes a gradient by at most a 256th, up as often as down, which does not affect learning. float16
cannot represent very small or large gradients. So with float16 the worker keeps the rounding error and adds it to its
next gradient ("error feedback": F. Seide et al., "1-Bit Stochastic Gradient Descent", Interspeech 2014). No scale of
the loss has to be found.
"""

from typing import Any, List

from cluster.runtime.gradients import map_values
from cluster.runtime.tf_compat import tf

_SCOPE = "wire"  # of the kept errors


class Wire:
    """A converter of float32 to the format that is sent, and back.

    ``reset`` are the operations that clear the errors that a worker has kept.
    """

    def __init__(self, name: str = "float32"):
        self.type = tf.as_dtype(name)
        self.reset: List[Any] = []

    def narrow(self, value: Any) -> Any:
        """Return a value in the format that is sent; the operation is on the current device."""
        return value if self.type == tf.float32 else tf.cast(value, self.type)

    def widen(self, value: Any) -> Any:
        """Return a received value in float32; the operation is on the current device."""
        if value.dtype == tf.bfloat16:
            return _from_bfloat16(value)
        return tf.cast(value, tf.float32) if value.dtype == tf.float16 else value

    def narrow_rows(self, grad: Any) -> Any:
        """Return a sparse gradient in the format that is sent; the operation is on the current device.

        With float16 its values are sent as bfloat16, too: a worker cannot keep the errors of rows.
        """
        if self.type == tf.float32:
            return grad
        return map_values(grad, lambda values: tf.cast(values, tf.bfloat16))

    def widen_rows(self, grad: Any) -> Any:
        """Return a received sparse gradient in float32; the operation is on the current device."""
        return grad if self.type == tf.float32 else map_values(grad, self.widen)

    def narrow_gradient(self, name: str, grad: Any) -> Any:
        """Return a gradient in the format that is sent.

        In float16 the method adds the error that is kept under ``name``, and keeps the new error.
        """
        if self.type != tf.float16:
            return self.narrow(grad)
        with tf.variable_scope(_SCOPE):
            kept = tf.get_variable(
                name,
                grad.shape,
                initializer=tf.zeros_initializer(),
                trainable=False,
                collections=[],
                use_resource=False,
            )
        self.reset.append(kept.initializer)
        whole = grad + kept
        largest = float(self.type.max)
        sent = tf.cast(tf.clip_by_value(whole, -largest, largest), self.type)
        with tf.control_dependencies([tf.assign(kept, whole - self.widen(sent))]):
            return tf.identity(sent)


def _from_bfloat16(value: Any) -> Any:
    """Return the same numbers in float32; bfloat16 has the upper half of their bits.

    A cast in TensorFlow 1.15 takes more than twice as long.
    """
    bits = tf.cast(tf.bitcast(value, tf.uint16), tf.int32)
    return tf.bitcast(bits * (1 << 16), tf.float32)
