"""First values from a formula of a variable's name, so that every process gives it the same ones."""

import zlib
from typing import Any, Sequence

import numpy as np
import tensorflow.compat.v1 as tf


def first(name: str, shape: Sequence[int], scale: float = 1.0) -> np.ndarray:
    """Numbers between ± ``scale`` / √fan-in, alike for the same name and shape."""
    phase = zlib.crc32(name.encode()) % 100
    waves = np.sin(0.7 * np.arange(int(np.prod(shape))) + phase).reshape(shape)
    return (waves * scale / np.sqrt(max(1, shape[0]) if len(shape) > 1 else 1)).astype(np.float32)


def starting(name: str, shape: Sequence[int], scale: float = 1.0) -> Any:
    """An initializer with those numbers."""
    return tf.constant_initializer(first(name, shape, scale))


def made(name: str, shape: Sequence[int], scale: float = 1.0, **asked: Any) -> Any:
    """A variable of ``tf.get_variable`` that begins with those numbers."""
    return tf.get_variable(name, shape, initializer=starting(name, shape, scale), **asked)
