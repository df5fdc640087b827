"""First values that depend on the whole shape, on an array or on another variable."""

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from tests.differential.authors import author
from tests.differential.losses import Args, error_of, sgd, square, through
from tests.differential.values import first, starting


def _initialised(x: Any, y: Any, args: Args, initializer: Any) -> Any:
    width = int(args["width"])
    return error_of(through(x, tf.get_variable("w", [width, width], initializer=initializer)), y)


@author(sgd)
def orthogonal(x: Any, y: Any, args: Args) -> Any:
    """tf.orthogonal_initializer."""
    return _initialised(x, y, args, tf.orthogonal_initializer(gain=0.5, seed=3))


@author(sgd)
def identity_matrix(x: Any, y: Any, args: Args) -> Any:
    """tf.initializers.identity."""
    return _initialised(x, y, args, tf.initializers.identity(gain=0.5))


@author(sgd)
def glorot(x: Any, y: Any, args: Args) -> Any:
    """tf.glorot_uniform_initializer, whose range is that of the whole shape."""
    return _initialised(x, y, args, tf.glorot_uniform_initializer(seed=5))


@author(sgd)
def variance_scaling(x: Any, y: Any, args: Args) -> Any:
    """tf.variance_scaling_initializer by the fan-out."""
    return _initialised(x, y, args, tf.variance_scaling_initializer(mode="fan_out", seed=6))


@author(sgd)
def stateless(x: Any, y: Any, args: Args) -> Any:
    """A function that draws by a seed of its own and does not know of slices."""

    def drawn(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        return tf.random.stateless_uniform(shape, seed=[3, 4], minval=-0.1, maxval=0.1)

    return _initialised(x, y, args, drawn)


@author(sgd)
def tensor_as_first_value(x: Any, y: Any, args: Args) -> Any:
    """initializer= a tensor, which has the shape."""
    width = int(args["width"])
    w = tf.get_variable("w", initializer=tf.constant(first("w", [width, width])) * 0.5)
    return error_of(through(x, w), y)


@author(sgd)
def array_as_first_value(x: Any, y: Any, args: Args) -> Any:
    """initializer= an array, as of pretrained embeddings."""
    width = int(args["width"])
    return error_of(through(x, tf.get_variable("w", initializer=first("w", [width, width]))), y)


@author(sgd)
def first_value_of_another(x: Any, y: Any, args: Args) -> Any:
    """A variable that begins as the transpose of another's initialized_value()."""
    w = square(args)
    back = tf.get_variable("back", initializer=lambda: tf.transpose(w.initialized_value()) * 0.5)
    return error_of(through(through(x, w), back), y)


@author(sgd)
def diagonal(x: Any, y: Any, args: Args) -> Any:
    """A function of the shape that gives each row and column a meaning."""

    def made_of(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        rows, columns = (tf.range(int(size), dtype=tf.float32) for size in shape)
        return tf.exp(-tf.abs(rows[:, None] - columns[None, :])) / 4

    return _initialised(x, y, args, made_of)


@author(sgd)
def seeded_normal(x: Any, y: Any, args: Args) -> Any:
    """tf.truncated_normal_initializer with a seed of its own."""
    return _initialised(x, y, args, tf.truncated_normal_initializer(stddev=0.1, seed=9))


@author(sgd)
def default_of_a_scope(x: Any, y: Any, args: Args) -> Any:
    """variable_scope(initializer=)."""
    width = int(args["width"])
    with tf.variable_scope("all", initializer=tf.random_uniform_initializer(-0.1, 0.1, seed=2)):
        w = tf.get_variable("w", [width, width])
    return error_of(through(x, w), y)


@author(sgd)
def local_connections(x: Any, y: Any, args: Args) -> Any:
    """A constant mask on weights, both arrays."""
    width = int(args["width"])
    mask = (np.abs(np.subtract.outer(np.arange(width), np.arange(width))) < width // 2).astype(np.float32)
    w = tf.get_variable("w", [width, width], initializer=starting("w", [width, width]))
    frozen = tf.get_variable("mask", [width, width], initializer=tf.constant_initializer(mask), trainable=False)
    return error_of(through(x, w * frozen), y)
