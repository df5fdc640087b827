"""Predict clicks by DLRM, or by wide and deep; each column of Criteo's logs has a table without a vocabulary.

Naumov et al., "Deep Learning Recommendation Model for Personalization and Recommendation Systems", 2019: pairwise
products of the vectors of all columns, and of a vector that a network computes from the numbers. Cheng et al., "Wide &
Deep Learning for Recommender Systems", 2016: a linear model in parallel with a deep network.

args: data_dir (a folder with files of Criteo's format on every worker's host, the last of them held out; without
data_dir, made-up examples), network (dlrm, or wide_and_deep), width (16), bottom ([64], of dlrm), hidden ([64, 32]),
shuffle (10000), learning_rate (0.02, of Adagrad).
"""

from typing import Any, Callable, Dict, List, Tuple

import numpy as np
import tensorflow.compat.v1 as tf

from cluster import embedding, metrics, shards
from cluster.layers import dense
from cluster.task import Task
from jobs import criteo

FIRST_SUM = 1e-6  # of squared gradients: with TensorFlow's 0.1, rows with few examples would not move


def inputs(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    if "data_dir" in args:
        files = criteo.files_in(args["data_dir"])[:-1]
        return shards.lines(task, files, criteo.parse, shuffle=args.get("shuffle", 10000))
    lines = criteo.lines(task, args, held_out=False).shuffle(args.get("shuffle", 10000), seed=0).repeat()
    return lines.batch(task.batch_size, drop_remainder=True).map(criteo.parse)


def evaluate(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    if "data_dir" in args:
        last = criteo.files_in(args["data_dir"])[-1]
        lines = tf.data.TextLineDataset(last, "GZIP" if last.endswith(".gz") else "")
    else:
        lines = criteo.lines(task, args, held_out=True)
    return lines.batch(1000).map(criteo.parse)


def rows(name: str, categories: tf.Tensor, width: int, **of_table: Any) -> tf.Tensor:
    """Look up the category of each column in the column's own table; return the rows, [batch, columns, width].

    ``name`` is the prefix of the tables' names.
    """
    tables = [embedding.table(f"{name}{column}", width, **of_table) for column in range(criteo.CATEGORIES)]
    return tf.stack([embedding.lookup(each, categories[:, column]) for column, each in enumerate(tables)], 1)


def layers(name: str, x: tf.Tensor, sizes: List[int], layer: Callable[..., Any]) -> tf.Tensor:
    for index, units in enumerate(sizes):
        x = tf.nn.relu(layer(f"{name}{index}", x, units))
    return x


def dlrm(numbers: tf.Tensor, vectors: tf.Tensor, args: Dict[str, Any], layer: Callable[..., Any] = dense) -> tf.Tensor:
    """Return the logits [batch] of DLRM, from ``numbers`` [batch, n] and ``vectors`` [batch, columns, width]."""
    bottom = layers("bottom", numbers, [*args.get("bottom", [64]), int(vectors.shape[2])], layer)
    joined = tf.concat([bottom[:, tf.newaxis], vectors], 1)
    count = int(joined.shape[1])
    pairs = np.ravel_multi_index(np.tril_indices(count, -1), (count, count))
    products = tf.reshape(tf.matmul(joined, joined, transpose_b=True), [-1, count * count])
    x = layers("hidden", tf.concat([bottom, tf.gather(products, pairs, axis=1)], 1), hidden(args), layer)
    return tf.squeeze(layer("output", x, 1), 1)


def wide_and_deep(
    numbers: tf.Tensor, vectors: tf.Tensor, weights: tf.Tensor, args: Dict[str, Any], layer: Callable[..., Any] = dense
) -> tf.Tensor:
    """Return the logits [batch] of the wide and deep network.

    ``numbers`` [batch, n] and ``vectors`` [batch, columns, width] enter the deep part; ``weights`` [batch, columns, 1]
    are the weights of the wide part.
    """
    flat = tf.reshape(vectors, [-1, int(vectors.shape[1]) * int(vectors.shape[2])])
    x = layers("hidden", tf.concat([numbers, flat], 1), hidden(args), layer)
    return tf.squeeze(layer("output", x, 1), 1) + tf.reduce_sum(weights, [1, 2])


def hidden(args: Dict[str, Any]) -> List[int]:
    return list(args.get("hidden", [64, 32]))


def logits_of(numbers: tf.Tensor, categories: tf.Tensor, args: Dict[str, Any]) -> tf.Tensor:
    vectors = rows("deep", categories, args.get("width", 16))
    if args.get("network", "dlrm") == "dlrm":
        return dlrm(numbers, vectors, args)
    return wide_and_deep(numbers, vectors, rows("wide", categories, 1, initializer=tf.zeros_initializer()), args)


def model(label: tf.Tensor, numbers: tf.Tensor, categories: tf.Tensor, args: Dict[str, Any]) -> Tuple[Any, Any]:
    logits = logits_of(numbers, categories, args)
    click = tf.sigmoid(logits)
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits), {
        "auc": metrics.auc(label, logits),
        "logloss": metrics.logloss(label, click),
        "calibration": metrics.calibration(label, click),
    }


def predict(numbers: tf.Tensor, categories: tf.Tensor, args: Dict[str, Any]) -> Dict[str, tf.Tensor]:
    return {"click": tf.sigmoid(logits_of(numbers, categories, args))}


def optimizer(args: Dict[str, Any]) -> tf.train.Optimizer:
    return tf.train.AdagradOptimizer(rate(args), initial_accumulator_value=FIRST_SUM)


def rate(args: Dict[str, Any]) -> float:
    return float(args.get("learning_rate", 0.02))
