"""A job for tests: logistic regression on fixed examples in a fixed order, with metrics of its predictions.

args: examples (how many there are, repeated without end).
"""

from typing import Any, Dict

import numpy as np
import tensorflow.compat.v1 as tf

from cluster import metrics
from cluster.task import Task

RATE = 0.5
COUNTRIES = ("FR", "DE", "IT")


def examples(number: int) -> Dict[str, np.ndarray]:
    random = np.random.RandomState(0)
    x = random.uniform(-1, 1, [number, 3]).astype(np.float32)
    label = (x.sum(1) + random.normal(0, 0.7, number) > 0).astype(np.int32)
    return {"x": x, "label": label, "user": random.randint(0, 9, number), "country": random.choice(COUNTRIES, number)}


def inputs(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    data = tf.data.Dataset.from_tensor_slices(examples(int(args["examples"])))
    return data.shard(task.num_workers, task.worker_index).repeat().batch(task.batch_size, drop_remainder=True)


def model(x: tf.Tensor, label: tf.Tensor, user: tf.Tensor, country: tf.Tensor) -> Any:
    weights = tf.get_variable("weights", [3], initializer=tf.zeros_initializer())
    logits = tf.reduce_sum(x * weights, 1)
    click = tf.sigmoid(logits)
    loss = tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.cast(label, tf.float32), logits=logits)
    step = tf.cast(tf.train.get_global_step(), tf.float64)
    return loss, {
        "age": metrics.mean(step + tf.cast(loss, tf.float64)),  # it grows with every step
        "auc": (label, logits),
        "gauc": metrics.grouped_auc(label, logits, user),
        "calibration": metrics.by(country, metrics.calibration(label, click)),
        "logloss": metrics.logloss(label, click),
    }


def optimizer(args: Dict[str, Any]) -> tf.train.Optimizer:
    return tf.train.GradientDescentOptimizer(RATE)


def evaluate(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(examples(500)).batch(64)
