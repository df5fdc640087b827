"""How variables and gradients reach the model and the optimizer of one process: as they are, or through 16 bits.

What bfloat16 on the wire makes of a model is computed here once more, independently of the project: the model reads
rounded variables, the optimizer gets rounded gradients, and moves variables that have all of their bits.
"""

from typing import Any, List

import numpy as np
import tensorflow.compat.v1 as tf


class InFull:
    """Nothing is rounded."""

    def gradient(self, grad: Any) -> Any:
        """Returns the gradient that is applied."""
        return grad

    def arrived(self) -> List[Any]:
        """Returns operations that run after the gradients were computed, and before they are applied."""
        return []

    def run(self, session: Any, step: Any) -> None:
        """Trains one step."""
        session.run(step)


class Rounded(InFull):
    """The trainable variables are rounded to bfloat16 for the model, and the gradients for the optimizer."""

    def __init__(self) -> None:
        self._variables: List[Any] = []
        self._masters: List[Any] = []

    def gradient(self, grad: Any) -> Any:
        """Returns the same gradient, rounded; of rows their values are."""
        if isinstance(grad, tf.IndexedSlices):
            return tf.IndexedSlices(self.gradient(grad.values), grad.indices, grad.dense_shape)
        if grad is None or grad.dtype != tf.float32:
            return grad
        return tf.cast(tf.cast(grad, tf.bfloat16), tf.float32)

    def arrived(self) -> List[Any]:
        """Returns operations that give the variables all of their bits back."""
        self._variables = [each for each in tf.trainable_variables() if each.dtype.base_dtype == tf.float32]
        with tf.control_dependencies(None):  # a placeholder that waits waits no longer once it is fed
            self._masters = [tf.placeholder(tf.float32, each.shape) for each in self._variables]
        return [tf.assign(variable, master) for variable, master in zip(self._variables, self._masters)]

    def run(self, session: Any, step: Any) -> None:
        """Trains one step that begins with rounded variables."""
        masters = session.run(self._variables)
        for variable, value in zip(self._variables, masters):
            variable.load(short(value), session)
        session.run(step, dict(zip(self._masters, masters)))


def short(value: Any) -> Any:
    """Returns the numbers of float32 with the bits that bfloat16 has: the upper half, to the nearest and even one."""
    bits = np.asarray(value, np.float32).view(np.uint32)
    nearest = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return nearest.astype(np.uint32).view(np.float32).reshape(np.shape(value))
