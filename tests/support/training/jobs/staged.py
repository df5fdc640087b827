"""The polynomial in two stages: its features on the first device of a tower, its weights on the second."""

import tensorflow.compat.v1 as tf

from cluster.stages import stage
from jobs.polynomial import inputs, optimizer

__all__ = ["inputs", "model", "optimizer"]


def model(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    with stage(0, of=2):
        features = tf.stack([tf.square(x), x, tf.ones_like(x)], axis=1)
    with stage(1, of=2):
        w = tf.get_variable("w", shape=[3, 1])
        return tf.square(tf.squeeze(tf.matmul(features, w), axis=1) - y)
