"""In which numbers gradients and variables travel (``train.wire``); servers and workers compute in float32.

float16 and bfloat16 halve the bytes of both ways. What rounding takes from a gradient is kept by the
worker and added to its next one, so that nothing is lost but time ("error feedback": F. Seide et al.,
"1-Bit Stochastic Gradient Descent", Interspeech 2014). It also serves where float16 has no number for
a gradient because it is too small or too large, so no scale of the loss has to be found.
"""

from typing import Any, List

from cluster.engine import tf

NAMES = ("float32", "bfloat16", "float16")
_SCOPE = "wire"  # of what is kept


class Wire:
    """Turns float32 into what travels, and back.

    ``reset`` are the operations that make a worker forget what it has kept.
    """

    def __init__(self, name: str = "float32"):
        self.type = tf.as_dtype(name)
        self.reset: List[Any] = []

    def narrow(self, value: Any) -> Any:
        """A value as it is sent, made on the current device."""
        return value if self.type == tf.float32 else tf.cast(value, self.type)

    def widen(self, value: Any) -> Any:
        """A value that has come, in float32, made on the current device."""
        if value.dtype == tf.bfloat16:
            return _from_bfloat16(value)
        return tf.cast(value, tf.float32) if value.dtype == tf.float16 else value

    def narrow_gradient(self, name: str, grad: Any) -> Any:
        """A gradient as it is sent, together with what was kept of those before it under the same ``name``."""
        if self.type == tf.float32:
            return grad
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
        sent = tf.cast(self._in_range(whole), self.type)
        with tf.control_dependencies([tf.assign(kept, whole - self.widen(sent))]):
            return tf.identity(sent)

    def _in_range(self, value: Any) -> Any:
        if self.type != tf.float16:
            return value  # bfloat16 has the range of float32
        return tf.clip_by_value(value, -float(self.type.max), float(self.type.max))


def _from_bfloat16(value: Any) -> Any:
    """The same numbers in float32, of which bfloat16 is the upper half of the bits.

    TensorFlow 1.15 takes more than twice as long for a cast.
    """
    bits = tf.cast(tf.bitcast(value, tf.uint16), tf.int32)
    return tf.bitcast(bits * (1 << 16), tf.float32)
