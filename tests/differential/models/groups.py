"""Several losses by name, metrics beside them, and several optimizers for groups of variables."""

from typing import Any, Dict, Tuple

import tensorflow.compat.v1 as tf

from tests.differential.authors import author
from tests.differential.data import labelled, wide_and_deep
from tests.differential.losses import Args, adam, error_of, momentum, sgd, square, through
from tests.differential.values import made


def _wide_and_deep(x: Any, ids: Any, y: Any, args: Args) -> Any:
    with tf.variable_scope("wide"):
        weights = made("weights", [int(args["rows"]), 8], 3.0)
        wide = tf.reduce_mean(tf.nn.embedding_lookup(weights, ids), [1, 2])
    with tf.variable_scope("deep"):
        return error_of(through(x, square(args)), y - wide)


@author(lambda args: {"wide": tf.train.FtrlOptimizer(0.1), "": tf.train.AdagradOptimizer(0.1)}, wide_and_deep)
def wide_ftrl_deep_adagrad(x: Any, ids: Any, y: Any, args: Args) -> Any:
    """Two optimizers by the beginning of names: Ftrl for a wide part, Adagrad for the rest."""
    return _wide_and_deep(x, ids, y, args)


@author(
    lambda args: {"deep/w": tf.train.AdamOptimizer(0.02, epsilon=0.01), "": tf.train.GradientDescentOptimizer(0.1)},
    wide_and_deep,
)
def adam_for_one_matrix(x: Any, ids: Any, y: Any, args: Args) -> Any:
    """Adam for one matrix, gradient descent for the rest."""
    return _wide_and_deep(x, ids, y, args)


@author(momentum)
def two_losses(x: Any, y: Any, args: Args) -> Dict[str, Any]:
    """Several losses by name, of which the sum is trained."""
    hidden = through(x, square(args))
    rebuilt = tf.matmul(hidden, square(args, "back"))
    return {"error": error_of(hidden, y), "rebuilt": tf.reduce_mean(tf.square(rebuilt - x), 1)}


@author(sgd)
def two_losses_and_a_decay(x: Any, y: Any, args: Args) -> Dict[str, Any]:
    """Several losses by name, one of them a decay that is alike for all examples."""
    error = error_of(through(x, square(args)), y)
    decay = tf.add_n([tf.nn.l2_loss(variable) for variable in tf.trainable_variables()])
    return {"error": error, "decay": 0.2 * decay * tf.ones_like(error)}


@author(sgd)
def with_metrics(x: Any, y: Any, args: Args) -> Tuple[Any, Dict[str, Any]]:
    """A loss, and metrics, which are not trained."""
    hidden = through(x, square(args))
    loss = error_of(hidden, y)
    return loss, {"size": tf.reduce_mean(tf.abs(hidden), 1), "root": tf.sqrt(loss)}


@author(adam, labelled)
def classes(x: Any, label: Any, args: Args) -> Any:
    """A softmax over four classes."""
    out = made("out", [int(args["width"]), 4])
    logits = tf.matmul(through(x, square(args)), out)
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=logits)


@author(sgd, labelled)
def weighted_classes(x: Any, label: Any, args: Args) -> Any:
    """Losses of examples that count differently."""
    out = made("out", [int(args["width"]), 4])
    logits = tf.matmul(through(x, square(args)), out)
    loss = tf.nn.softmax_cross_entropy_with_logits_v2(labels=tf.one_hot(label, 4), logits=logits)
    return loss * tf.gather(tf.constant([1.0, 0.5, 2.0, 0.25]), label)
