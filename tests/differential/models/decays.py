"""Weight decay and other penalties: whose terms are found in as many ways as authors find them."""

from typing import Any, List

import tensorflow.compat.v1 as tf

from tests.differential.authors import author
from tests.differential.losses import Args, adam, error_of, momentum, sgd, square, through

_DECAY = 0.3


def _l2(variables: List[Any]) -> Any:
    return _DECAY * tf.add_n([tf.nn.l2_loss(variable) for variable in variables])


@author(sgd)
def no_decay(x: Any, y: Any, args: Args) -> Any:
    """Nothing but an error: what every other model of this file begins with."""
    return error_of(through(x, square(args)), y)


@author(sgd)
def decay_of_trainable_variables(x: Any, y: Any, args: Args) -> Any:
    """l2_loss over tf.trainable_variables()."""
    return error_of(through(x, square(args)), y) + _l2(tf.trainable_variables())


@author(adam)
def decay_of_trainable_variables_with_adam(x: Any, y: Any, args: Args) -> Any:
    """l2_loss over tf.trainable_variables(), with Adam."""
    return error_of(through(x, square(args)), y) + _l2(tf.trainable_variables())


@author(momentum)
def decay_but_for_biases(x: Any, y: Any, args: Args) -> Any:
    """Variables that are left out of the decay by name."""
    loss = error_of(through(x, square(args)), y)
    return loss + _l2([variable for variable in tf.trainable_variables() if "b:0" not in variable.name])


@author(sgd)
def decay_of_a_scope(x: Any, y: Any, args: Args) -> Any:
    """tf.get_collection with a scope."""
    with tf.variable_scope("hidden"):
        hidden = through(x, square(args))
    return error_of(hidden, y) + _l2(tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="hidden"))


@author(sgd)
def decay_of_the_value(x: Any, y: Any, args: Args) -> Any:
    """l2_loss of what get_variable returned."""
    w = square(args)
    return error_of(through(x, w), y) + _DECAY * tf.nn.l2_loss(w)


@author(sgd)
def regularizer_argument(x: Any, y: Any, args: Args) -> Any:
    """get_variable(regularizer=) and tf.losses.get_regularization_loss()."""
    w = square(args, regularizer=lambda value: _DECAY * tf.nn.l2_loss(value))
    return error_of(through(x, w), y) + tf.losses.get_regularization_loss()


@author(momentum)
def regularizer_of_a_scope(x: Any, y: Any, args: Args) -> Any:
    """variable_scope(regularizer=) and the collection of losses."""
    with tf.variable_scope("all", regularizer=lambda value: _DECAY * tf.reduce_sum(tf.sqrt(tf.square(value) + 0.01))):
        loss = error_of(through(x, square(args)), y)
    return loss + tf.add_n(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))


@author(sgd)
def collection_of_the_author(x: Any, y: Any, args: Args) -> Any:
    """get_variable(collections=) with a collection of the author's own."""
    w = square(args, collections=[tf.GraphKeys.GLOBAL_VARIABLES, "decayed"])
    return error_of(through(x, w), y) + _l2(tf.get_collection("decayed"))


@author(sgd)
def losses_collection(x: Any, y: Any, args: Args) -> Any:
    """A term that is added to a collection where the variable is made, as TensorFlow's tutorial on CIFAR does."""
    with tf.name_scope("tower") as scope:
        w = square(args)
        tf.add_to_collection("losses", tf.multiply(tf.nn.l2_loss(w), _DECAY, name="weight_loss"))
        return error_of(through(x, w), y) + tf.add_n(tf.get_collection("losses", scope))


@author(sgd)
def losses_of_the_graph(x: Any, y: Any, args: Args) -> Any:
    """The same, by an author who knows of one model in a graph and asks for no scope."""
    w = square(args)
    tf.add_to_collection("losses", _DECAY * tf.nn.l2_loss(w))
    tf.add_to_collection("losses", tf.reduce_mean(error_of(through(x, w), y)))
    return tf.add_n(tf.get_collection("losses")) * tf.ones_like(y)


@author(sgd)
def orthogonality(x: Any, y: Any, args: Args) -> Any:
    """A penalty on WᵀW, which needs the whole matrix."""
    w = square(args)
    penalty = tf.reduce_sum(tf.square(tf.matmul(w, w, transpose_a=True) - tf.eye(int(args["width"]))))
    return error_of(through(x, w), y) + 0.05 * penalty


@author(sgd)
def norm_of_the_whole(x: Any, y: Any, args: Args) -> Any:
    """Weights over their norm, of tf.trainable_variables()[0]."""
    square(args)
    w = tf.trainable_variables()[0]
    return error_of(through(x, w / tf.norm(w)), y)


@author(adam)
def decay_of_global_variables(x: Any, y: Any, args: Args) -> Any:
    """tf.global_variables() by name, as programs that load pretrained models do."""
    hidden = through(x, square(args))
    found = {variable.op.name: variable for variable in tf.global_variables()}
    return error_of(hidden, y) + _l2([found["w"]])
