"""Dense layers of one size, with real arithmetic: a forward pass takes about as long as their variables to travel.

args: layers and side, of the square matrix of each.
"""

from typing import Any, Dict

import tensorflow.compat.v1 as tf

from cluster.task import Task


def inputs(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    x = tf.random.stateless_uniform([task.batch_size, args["side"]], [1, task.worker_index])
    return tf.data.Dataset.from_tensors({"x": x}).repeat()


def model(x: tf.Tensor, args: Dict[str, Any]) -> tf.Tensor:
    start = tf.glorot_uniform_initializer(seed=1)
    for index in range(args["layers"]):
        x = tf.nn.relu(x @ tf.get_variable(f"layer_{index}", [args["side"], args["side"]], initializer=start))
    return tf.reduce_mean(x, 1)


def optimizer(args: Dict[str, Any]) -> tf.train.Optimizer:
    return tf.train.GradientDescentOptimizer(0.01)
