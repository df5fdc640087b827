"""Predict clicks on advertisements: a wide and deep network on Criteo's click logs.

Cheng et al., "Wide & Deep Learning for Recommender Systems", 2016. The wide part is linear in every category and in
pairs of neighbouring categories; the deep part has embeddings of the categories. Categories and pairs are hashed into
two tables.

args: data_dir (a folder with files of Criteo's format on every worker's host; without data_dir, made-up examples),
buckets (100000), width (16), hidden ([64, 32]), seed (0), and the arguments of cluster/optimizers.py.
"""

from typing import Any, Dict, Tuple

import tensorflow.compat.v1 as tf

from cluster.layers import dense
from cluster.optimizers import from_args
from cluster.task import Task
from jobs import criteo


def inputs(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    lines = criteo.lines(task, args, held_out=False).shuffle(20000, seed=args.get("seed", 0)).repeat()
    return lines.batch(task.batch_size, drop_remainder=True).map(criteo.parse, num_parallel_calls=2)


def evaluate(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    return criteo.lines(task, args, held_out=True).batch(1000).map(criteo.parse)


def rows(texts: tf.Tensor, args: Dict[str, Any]) -> tf.Tensor:
    return tf.strings.to_hash_bucket_fast(texts, args.get("buckets", 100000))


def table(name: str, width: int, args: Dict[str, Any]) -> tf.Tensor:
    """Return the table ``name``, which stays on the parameter servers: the model only looks up rows."""
    initial = tf.random_normal_initializer(stddev=0.05) if width > 1 else tf.zeros_initializer()
    return tf.get_variable(name, [args.get("buckets", 100000), width], initializer=initial)


def model(
    label: tf.Tensor, numbers: tf.Tensor, categories: tf.Tensor, args: Dict[str, Any]
) -> Tuple[tf.Tensor, Dict[str, Any]]:
    pairs = tf.strings.join([categories[:, :-1], categories[:, 1:]], "&")
    wide = tf.nn.embedding_lookup(table("wide", 1, args), rows(tf.concat([categories, pairs], 1), args))
    width = args.get("width", 16)
    deep = tf.nn.embedding_lookup(table("deep", width, args), rows(categories, args))
    x = tf.concat([numbers, tf.reshape(deep, [-1, criteo.CATEGORIES * width])], 1)
    for index, units in enumerate(args.get("hidden", [64, 32])):
        x = tf.nn.relu(dense(f"hidden{index}", x, units))
    logits = tf.squeeze(dense("output", x, 1), 1) + tf.reduce_sum(wide, [1, 2])
    loss = tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits)
    return loss, {"auc": (label, logits)}


def optimizer(args: Dict[str, Any]) -> tf.train.Optimizer:
    return from_args(args, optimizer="adagrad", learning_rate=0.2)
