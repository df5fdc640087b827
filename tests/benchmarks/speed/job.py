"""What is trained: variables of the given shapes and almost no arithmetic, so that a step is what the network takes.

No gradient exists before all variables have been read, as in a real model. Gradients are dense and of full size.

args: shapes, a list of lists of numbers.
"""

from typing import Any, Dict

import tensorflow.compat.v1 as tf

from cluster.task import Task


def inputs(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    return tf.data.Dataset.range(1).repeat().map(lambda _: {"x": tf.zeros([task.batch_size])})


def model(x: tf.Tensor, args: Dict[str, Any]) -> tf.Tensor:
    return loss(args["shapes"]) + x


def loss(shapes: Any) -> tf.Tensor:
    """A scalar that depends on every value of the variables, which it makes."""
    zeros = tf.zeros_initializer()
    values = [tf.get_variable(f"v{index:03}", shape, initializer=zeros) for index, shape in enumerate(shapes)]
    # Each counts differently: equal gradients would be one tensor to TensorFlow, and be sent once for all of them.
    means = [tf.reduce_mean(value) / (index + 1) for index, value in enumerate(values)]
    return tf.square(tf.add_n(means) / len(values) - 1)


def optimizer(args: Dict[str, Any]) -> tf.train.Optimizer:
    return tf.train.GradientDescentOptimizer(0.01)
