"""Fit y = 5x² + 3: the smallest job, with three weights.

args: seed (0), and the arguments of cluster/optimizers.py.
"""

from typing import Any, Dict

import tensorflow.compat.v1 as tf

from cluster.optimizers import from_args
from cluster.task import Task


def inputs(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    """Return endless batches of x, uniform in -10 … 10, and of y for each x; every worker draws different batches."""
    seed = args.get("seed", 0) + task.worker_index

    def points(index: tf.Tensor) -> Dict[str, tf.Tensor]:
        x = tf.random_uniform([task.batch_size], -10.0, 10.0, seed=seed)
        return {"x": x, "y": 5 * tf.square(x) + 3}

    return tf.data.Dataset.range(1).repeat().map(points)


def model(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Return the squared error of w₀x² + w₁x + w₂; w should become 5, 0, 3."""
    w = tf.get_variable("w", shape=[3, 1])
    features = tf.stack([tf.square(x), x, tf.ones_like(x)], axis=1)
    return tf.square(tf.squeeze(tf.matmul(features, w), axis=1) - y)


def optimizer(args: Dict[str, Any]) -> tf.train.Optimizer:
    return from_args(args, learning_rate=0.1)


def evaluate(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    """Return a thousand points on a grid; the reported loss is the mean squared error there."""
    x = tf.linspace(-10.0, 10.0, 1000)
    return tf.data.Dataset.from_tensors({"x": x, "y": 5 * tf.square(x) + 3})
