"""Models that take gradients themselves."""

from typing import Any

import tensorflow.compat.v1 as tf

from tests.differential.authors import author
from tests.differential.losses import Args, adam, error_of, sgd, square, through


@author(sgd, same=True)
def penalty_on_gradients(x: Any, y: Any, args: Args) -> Any:
    """tf.gradients(loss, tf.trainable_variables()), whose square is a penalty."""
    loss = error_of(through(x, square(args)), y)
    grads = tf.gradients(tf.reduce_mean(loss), tf.trainable_variables())
    return loss + 0.05 * tf.add_n([tf.reduce_sum(tf.square(grad)) for grad in grads])


@author(sgd)
def penalty_on_inputs(x: Any, y: Any, args: Args) -> Any:
    """tf.gradients of the output for the input, as WGAN-GP has."""
    hidden = through(x, square(args))
    slopes = tf.gradients(tf.reduce_mean(hidden, 1), x)[0]
    return error_of(hidden, y) + 0.3 * tf.square(tf.norm(slopes + 0.1, axis=1) - 1)


@author(adam)
def hessian_vector(x: Any, y: Any, args: Args) -> Any:
    """A product with the Hessian of a part of the loss."""
    w = square(args)
    inner = tf.reduce_sum(tf.square(w)) ** 2 / 4
    direction = tf.ones_like(w) * 0.01
    product = tf.gradients(tf.gradients(inner, w)[0], w, grad_ys=tf.stop_gradient(direction))[0]
    return error_of(through(x, w), y) + tf.reduce_sum(product)


@author(sgd)
def inner_step(x: Any, y: Any, args: Args) -> Any:
    """A step of gradient descent inside the model, as MAML takes."""
    w = square(args)
    slope = tf.gradients(tf.reduce_sum(tf.square(tf.matmul(tf.eye(int(args["width"])), w))), w)[0]
    return error_of(through(x, w - 0.2 * slope), y)
