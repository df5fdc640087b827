"""A job for tests: the model of ``clicks`` with its tables under other names, which learns nothing.

args: steps (how many batches there are before they repeat).
"""

from typing import Any, Dict

import tensorflow.compat.v1 as tf

from cluster import embedding
from tests.support.training.jobs.clicks import WIDTH, inputs  # noqa: F401 (of this job, too)


def model(user: tf.Tensor, words: tf.Tensor, hour: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    members = embedding.table("members", WIDTH, admit=embedding.after(1000))
    terms, hours = embedding.table("text/terms", WIDTH), embedding.table("hours", 1)
    weights = tf.get_variable("last/weights", [WIDTH], initializer=tf.zeros_initializer())
    both = embedding.lookup(members, user) + embedding.lookup(terms, words, "mean")
    logits = tf.reduce_sum(both * weights, 1) + tf.squeeze(embedding.lookup(hours, hour), 1)
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits)


def optimizer(args: Dict[str, Any]) -> tf.train.Optimizer:
    return tf.train.AdagradOptimizer(0.0)
