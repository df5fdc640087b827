"""A job for tests: ``clicks`` with inputs of every kind, a layer of Keras, a lookup table, and ``predict``.

args: those of ``clicks``; wide (numbers in the served ``score``).
"""

from typing import Any, Dict

import numpy as np
import tensorflow.compat.v1 as tf

from cluster import embedding
from cluster.task import Task
from tests.support.training.jobs import clicks
from tests.support.training.jobs.clicks import optimizer

__all__ = ["evaluate", "inputs", "model", "optimizer", "predict"]
WORDS = tf.lookup.KeyValueTensorInitializer


def shaped(batch: Dict[str, Any]) -> Dict[str, Any]:
    """Tags as a sparse tensor and words as a ragged one: an example has one word for each hour, at most three."""
    words = tf.RaggedTensor.from_tensor(batch.pop("words"), lengths=tf.minimum(batch["hour"], clicks.WORDS))
    tags = tf.sparse.from_dense(tf.stack([batch["user"] % 5, batch["user"] % 3], 1))
    return {**batch, "words": words, "tags": tags}


def inputs(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    return clicks.inputs(task, args).map(shaped)


def logits(user: Any, words: Any, tags: Any, hour: Any) -> tf.Tensor:
    users = embedding.lookup(embedding.table("user", 4), user)
    terms = embedding.lookup(embedding.table("words", 4), words, "mean")
    sums = embedding.lookup(embedding.table("tags", 2, initializer=tf.constant_initializer(0.5)), tags, "sum")
    night = tf.lookup.StaticHashTable(WORDS(tf.constant([0, 1, 2]), [1.0, 2.0, 3.0]), 0.0).lookup(hour)
    layer = tf.keras.layers.Dense(1)(tf.concat([users, terms, sums], 1))
    return layer[:, 0] + night * tf.get_variable("night", [], initializer=tf.ones_initializer())


def model(user: Any, words: Any, tags: Any, hour: Any, y: Any) -> Any:
    found = logits(user, words, tags, hour)
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=found), {"score": tf.nn.sigmoid(found)}


def predict(user: Any, words: Any, tags: Any, hour: Any, args: Dict[str, Any]) -> Dict[str, tf.Tensor]:
    score = tf.nn.sigmoid(logits(user, words, tags, hour))
    return {"score": tf.tile(score[:, None], [1, args.get("wide", 1)])}


def held_out(number: int = 64) -> Dict[str, np.ndarray]:
    return clicks.examples(number)


def evaluate(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(held_out()).batch(16).map(shaped)
