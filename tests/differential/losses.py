"""What most of the models have around the part that they are about, and the usual optimizers."""

from typing import Any, Mapping

import tensorflow.compat.v1 as tf

from tests.differential.values import made

Args = Mapping[str, Any]
EPSILON = 0.01  # so large that an update does not depend on the last bit of a gradient near zero


def error_of(hidden: Any, y: Any) -> Any:
    """The squared error of each example, with a last layer ``v`` and a bias ``b``."""
    v = made("v", [int(hidden.shape[-1])])
    b = tf.get_variable("b", [], initializer=tf.constant_initializer(0.25))
    return tf.square(tf.reduce_sum(hidden * v, 1) / int(v.shape[0]) ** 0.5 + b - y)


def square(args: Args, name: str = "w", **asked: Any) -> Any:
    """A matrix of the asked width, which is cut where that is large."""
    width = int(args["width"])
    return made(name, [width, width], **asked)


def through(x: Any, w: Any) -> Any:
    """A layer with the weights ``w``."""
    return tf.tanh(tf.matmul(x, w))


def sgd(args: Args) -> Any:
    """Gradient descent."""
    return tf.train.GradientDescentOptimizer(0.1)


def momentum(args: Args) -> Any:
    """Gradient descent with momentum."""
    return tf.train.MomentumOptimizer(0.05, 0.9)


def adam(args: Args) -> Any:
    """Adam."""
    return tf.train.AdamOptimizer(0.02, epsilon=EPSILON)
