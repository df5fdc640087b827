"""A job for tests: embedding tables of three kinds of ids, two of one width, a dense layer, nothing drawn at random.

args: optimizer, steps (how many batches there are before they repeat).
"""

from typing import Any, Callable, Dict

import numpy as np
import tensorflow.compat.v1 as tf

from cluster import embedding
from cluster.optimizers import AdagradDecay
from cluster.task import Task

WIDTH, WORDS = 4, 3
REFUSED = (-9083939946084972772, 5902373223066527662)  # users whose keys TensorFlow's dense hash table refuses
OPTIMIZERS: Dict[str, Callable[[], tf.train.Optimizer]] = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.5),
    "momentum": lambda: tf.train.MomentumOptimizer(0.2, 0.9),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.2, 0.9, use_nesterov=True),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.3),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.3, l1_regularization_strength=0.001, l2_regularization_strength=0.01),
    "adam": lambda: tf.train.AdamOptimizer(0.02, epsilon=1e-5),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.02, momentum=0.5, epsilon=1e-5),
    "centered": lambda: tf.train.RMSPropOptimizer(0.02, epsilon=1e-3, centered=True),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(1.0, epsilon=1e-4),
    "adagrad_decay": lambda: AdagradDecay(0.3, decay=0.5, every=2),
}


def examples(number: int) -> Dict[str, np.ndarray]:
    """Ids as logs have them: a few often, most of them rarely, anywhere in 64 bits."""
    random = np.random.RandomState(1)
    users = random.zipf(1.3, number).astype(np.int64) * -(1 << 40)
    users[3::7], users[5::9] = REFUSED
    words = np.array([[f"word {word}" for word in row] for row in random.zipf(1.2, [number, WORDS]) % 1000])
    hours = random.randint(0, 24, number).astype(np.int32)
    return {"user": users, "words": words, "hour": hours, "y": (users % 7 > 3).astype(np.float32)}


def inputs(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    values = examples(int(args["steps"]) * task.batch_size * task.num_workers)
    data = tf.data.Dataset.from_tensor_slices(values).shard(task.num_workers, task.worker_index)
    return data.repeat().batch(task.batch_size, drop_remainder=True)


def model(user: tf.Tensor, words: tf.Tensor, hour: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    users = embedding.table("user", WIDTH, initializer=tf.random_uniform_initializer(-1.0, 1.0, seed=3))
    terms = embedding.table("words", WIDTH)
    hours = embedding.table("hours", 1, initializer=tf.zeros_initializer())
    weights = tf.get_variable("weights", [WIDTH], initializer=tf.ones_initializer())
    both = embedding.lookup(users, user) + embedding.lookup(terms, words, "mean")
    logits = tf.reduce_sum(both * weights, 1) + tf.squeeze(embedding.lookup(hours, hour), 1)
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits)


def optimizer(args: Dict[str, Any]) -> tf.train.Optimizer:
    return OPTIMIZERS[args.get("optimizer", "sgd")]()


def evaluate(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(examples(64)).batch(16)
