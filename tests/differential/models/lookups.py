"""Tables, of which only rows are taken, and those that are also used whole."""

from typing import Any

import tensorflow.compat.v1 as tf

from tests.differential.authors import author
from tests.differential.data import lookups, wide_and_deep
from tests.differential.losses import EPSILON, Args, adam, error_of, momentum, sgd, square, through
from tests.differential.values import made

_DEPTH = 8


def _table(args: Args, name: str = "table", **asked: Any) -> Any:
    return made(name, [int(args["rows"]), _DEPTH], 5.0, **asked)


def _rows(args: Args, ids: Any, name: str = "table", **asked: Any) -> Any:
    return tf.tanh(tf.reduce_sum(tf.nn.embedding_lookup(_table(args, name, **asked), ids), 1) + 0.1)


@author(sgd, lookups)
def embedding(ids: Any, y: Any, args: Args) -> Any:
    """tf.nn.embedding_lookup."""
    return error_of(_rows(args, ids), y)


@author(adam, lookups)
def embedding_with_adam(ids: Any, y: Any, args: Args) -> Any:
    """A table with Adam, which moves all of its rows."""
    return error_of(_rows(args, ids), y)


@author(momentum, lookups)
def embedding_with_momentum(ids: Any, y: Any, args: Args) -> Any:
    """A table with momentum."""
    return error_of(_rows(args, ids), y)


@author(lambda args: tf.train.AdagradOptimizer(0.1), lookups)
def embedding_with_adagrad(ids: Any, y: Any, args: Args) -> Any:
    """A table with Adagrad."""
    return error_of(_rows(args, ids), y)


@author(lambda args: tf.train.RMSPropOptimizer(0.02, momentum=0.5, epsilon=EPSILON), lookups)
def embedding_with_rmsprop(ids: Any, y: Any, args: Args) -> Any:
    """A table with RMSProp."""
    return error_of(_rows(args, ids), y)


@author(lambda args: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01), lookups)
def embedding_with_ftrl(ids: Any, y: Any, args: Args) -> Any:
    """A table with Ftrl."""
    return error_of(_rows(args, ids), y)


@author(sgd, lookups)
def two_tables(ids: Any, y: Any, args: Args) -> Any:
    """Two tables."""
    return error_of(_rows(args, ids[:, :2], "left") + _rows(args, ids[:, 1:], "right"), y)


@author(sgd, lookups)
def shared_table(ids: Any, y: Any, args: Args) -> Any:
    """One table that is looked up in two places."""
    table = _table(args)
    left, right = tf.gather(table, ids[:, 0]), tf.nn.embedding_lookup(table, ids[:, 1:])
    return error_of(tf.tanh(left * tf.reduce_sum(right, 1)), y)


@author(sgd, lookups)
def tied_weights(ids: Any, y: Any, args: Args) -> Any:
    """A table whose rows are looked up, and that is a softmax's weights, too."""
    table = _table(args)
    state = tf.tanh(tf.reduce_sum(tf.gather(table, ids[:, :2]), 1))
    logits = tf.matmul(state, table, transpose_b=True)
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=ids[:, 2], logits=logits) + 0.01 * y


@author(adam, lookups)
def decayed_table(ids: Any, y: Any, args: Args) -> Any:
    """A table that is decayed whole, by tf.trainable_variables()."""
    loss = error_of(_rows(args, ids), y)
    return loss + 0.1 * tf.add_n([tf.nn.l2_loss(variable) for variable in tf.trainable_variables()])


@author(sgd, lookups)
def decayed_rows(ids: Any, y: Any, args: Args) -> Any:
    """A table of which those rows are decayed that were looked up."""
    rows = tf.nn.embedding_lookup(_table(args), ids)
    return error_of(tf.tanh(tf.reduce_sum(rows, 1)), y) + 0.1 * tf.reduce_sum(tf.square(rows), [1, 2])


@author(sgd, lookups)
def regularized_table(ids: Any, y: Any, args: Args) -> Any:
    """A table with regularizer=."""
    loss = error_of(_rows(args, ids, regularizer=lambda table: 0.1 * tf.nn.l2_loss(table)), y)
    return loss + tf.losses.get_regularization_loss()


@author(sgd, lookups)
def table_with_constraint(ids: Any, y: Any, args: Args) -> Any:
    """A table whose rows have a length of at most 0.3, and that is read whole."""
    table = _table(args, constraint=lambda rows: tf.clip_by_norm(rows, 0.3, axes=[1]))
    hidden = tf.matmul(tf.one_hot(ids[:, 0], int(args["rows"])), table)
    return error_of(tf.tanh(hidden), y)


@author(sgd, lookups)
def limited_rows(ids: Any, y: Any, args: Args) -> Any:
    """embedding_lookup(max_norm=)."""
    rows = tf.nn.embedding_lookup(_table(args), ids, max_norm=0.2)
    return error_of(tf.tanh(tf.reduce_sum(rows, 1)), y)


@author(sgd, lookups)
def gather_nd(ids: Any, y: Any, args: Args) -> Any:
    """tf.gather_nd, which takes single numbers out of a variable."""
    table = _table(args)
    taken = tf.gather_nd(table, tf.stack([ids, ids % _DEPTH], -1))
    return tf.square(tf.reduce_sum(taken, 1) - y)


@author(sgd, lookups)
def resource_table(ids: Any, y: Any, args: Args) -> Any:
    """A table with use_resource=True."""
    return error_of(_rows(args, ids, use_resource=True), y)


@author(sgd, wide_and_deep)
def table_and_matrix(x: Any, ids: Any, y: Any, args: Args) -> Any:
    """A table and a matrix that is decayed by name."""
    hidden = through(x, square(args))
    loss = error_of(tf.concat([hidden, _rows(args, ids)], 1), y)
    return loss + 0.2 * tf.nn.l2_loss(next(v for v in tf.trainable_variables() if v.op.name == "w"))


@author(sgd, lookups)
def averaged_table(ids: Any, y: Any, args: Args) -> Any:
    """An average of a table, which reads it whole."""
    loss = error_of(_rows(args, ids), y)
    tf.add_to_collection(
        tf.GraphKeys.UPDATE_OPS, tf.train.ExponentialMovingAverage(0.5).apply(tf.trainable_variables())
    )
    return loss


@author(sgd, lookups)
def fixed_table(ids: Any, y: Any, args: Args) -> Any:
    """A table that is not trained, beside one that is."""
    return error_of(_rows(args, ids) + _rows(args, ids, "fixed", trainable=False), y)


@author(sgd, lookups)
def shape_of_a_table(ids: Any, y: Any, args: Args) -> Any:
    """tf.shape of a table, to take ids modulo its length."""
    table = _table(args)
    rows = tf.gather(table, (ids + 2) % tf.shape(table)[0])
    return error_of(tf.tanh(tf.reduce_sum(rows, 1)), y)


class _Shrinking(tf.train.AdagradOptimizer):  # type: ignore[misc]
    """Shrinks every gradient, sparse or not, by its global norm."""

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Any = None) -> Any:
        """Clips by the global norm, as TensorFlow clips sparse gradients."""
        grads, variables = zip(*grads_and_vars)
        return super().apply_gradients(list(zip(tf.clip_by_global_norm(grads, 0.1)[0], variables)), global_step, name)


@author(lambda args: _Shrinking(0.1), wide_and_deep)
def table_and_subclass(x: Any, ids: Any, y: Any, args: Args) -> Any:
    """A table whose optimizer is a subclass that clips by the global norm."""
    distinct = tf.gather(_table(args), ids[:, 0])
    return error_of(tf.concat([through(x, square(args)), tf.tanh(distinct)], 1), y)
