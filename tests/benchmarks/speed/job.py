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
    """A scalar that depends on every variable, which it makes."""
    zeros = tf.zeros_initializer()
    values = [tf.get_variable(f"v{index:03}", shape, initializer=zeros) for index, shape in enumerate(shapes)]
    return mean_of_firsts_squared([tf.convert_to_tensor(value) for value in values])


def mean_of_firsts_squared(values: Any) -> tf.Tensor:
    """How far the mean of the values' first elements is from 1, squared; its gradients are of full size."""
    return tf.square(_mean_of_firsts(*values) - 1)


@tf.custom_gradient
def _mean_of_firsts(*values: tf.Tensor) -> Any:
    """The mean of the variables' first elements, with gradients of full size, as if of all elements.

    Several processes share the cores here that have some of their own in a cluster: arithmetic would take its time
    four times. So a gradient costs no more than writing it. Each variable's is another number: equal gradients
    would be one tensor to TensorFlow, and be sent once for all of them.
    """
    firsts = [tf.reshape(value, [-1])[0] for value in values]

    def gradients(upstream: tf.Tensor) -> Any:
        return [tf.fill(value.shape, upstream / (index + 1)) for index, value in enumerate(values)]

    return tf.add_n(firsts) / len(values), gradients


def optimizer(args: Dict[str, Any]) -> tf.train.Optimizer:
    return tf.train.GradientDescentOptimizer(0.01)
