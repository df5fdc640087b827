"""Batches that are more than dense tensors by name."""

from typing import Any, Mapping

import tensorflow.compat.v1 as tf

from tests.differential.authors import author
from tests.differential.data import nested, ragged, sparse
from tests.differential.losses import Args, error_of, momentum, sgd, square, through
from tests.differential.values import made


def _table(args: Args) -> Any:
    return made("table", [int(args["rows"]), 8], 5.0)


@author(sgd, sparse)
def sparse_ids(ids: Any, y: Any, args: Args) -> Any:
    """A SparseTensor of ids and embedding_lookup_sparse."""
    rows = tf.nn.embedding_lookup_sparse(_table(args), ids, None, combiner="mean")
    return error_of(tf.tanh(rows), y)


@author(momentum, sparse)
def sparse_as_indicators(ids: Any, y: Any, args: Args) -> Any:
    """A SparseTensor that becomes dense, then indicators."""
    hot = tf.one_hot(tf.sparse.to_dense(ids), int(args["rows"]))
    return error_of(tf.tanh(tf.matmul(tf.reduce_sum(hot, 1), _table(args))), y)


@author(sgd, ragged)
def ragged_ids(ids: Any, y: Any, args: Args) -> Any:
    """A RaggedTensor of ids, whose rows are averaged."""
    rows = tf.ragged.map_flat_values(tf.gather, _table(args), ids)
    return error_of(tf.tanh(tf.reduce_mean(rows, 1)), y)


@author(sgd, nested)
def nested_batch(features: Mapping[str, Any], y: Any, args: Args) -> Any:
    """Mappings and pairs within the batch."""
    left, right = (tf.gather(_table_of(args), ids) for ids in features["pair"])
    hidden = through(features["dense"], square(args))
    return error_of(tf.concat([hidden, tf.tanh(left - right)], 1), y)


def _table_of(args: Args) -> Any:
    with tf.variable_scope("pairs", reuse=tf.AUTO_REUSE):
        return _table(args)
