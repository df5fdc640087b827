"""Constraints, which are applied after an update and see the whole variable."""

from typing import Any

import tensorflow.compat.v1 as tf

from tests.differential.authors import author
from tests.differential.losses import Args, adam, error_of, momentum, sgd, square, through


def _shortened(w: Any) -> Any:
    norm = tf.sqrt(tf.reduce_sum(tf.square(w)))
    return w * tf.minimum(norm, 1.5) / norm


@author(sgd)
def max_norm(x: Any, y: Any, args: Args) -> Any:
    """constraint= that limits the norm of the whole variable."""
    return error_of(through(x, square(args, constraint=_shortened)), y)


@author(adam)
def non_negative(x: Any, y: Any, args: Args) -> Any:
    """constraint= that cuts off negative weights, with Adam."""
    return error_of(through(x, square(args, constraint=lambda w: w * tf.cast(w >= 0, w.dtype))), y)


@author(momentum)
def unit_columns(x: Any, y: Any, args: Args) -> Any:
    """constraint= that makes every column as long as 1."""
    return error_of(through(x, square(args, constraint=lambda w: tf.nn.l2_normalize(w, 0))), y)


@author(sgd, runtimes=("tf1",))
def keras_constraint(x: Any, y: Any, args: Args) -> Any:
    """A constraint of tf.keras.constraints, of which Keras 3 takes no such variable."""
    return error_of(through(x, square(args, constraint=tf.keras.constraints.MaxNorm(0.4, axis=0))), y)


@author(sgd)
def constraint_of_a_scope(x: Any, y: Any, args: Args) -> Any:
    """variable_scope(constraint=), which holds for a bias, too."""
    with tf.variable_scope("all", constraint=lambda value: tf.clip_by_value(value, -0.05, 0.3)):
        return error_of(through(x, square(args)), y)


@author(sgd)
def constraint_and_decay(x: Any, y: Any, args: Args) -> Any:
    """A constraint on what is decayed, too."""
    loss = error_of(through(x, square(args, constraint=_shortened)), y)
    return loss + 0.2 * tf.add_n([tf.nn.l2_loss(variable) for variable in tf.trainable_variables()])
