"""A job for tests: a table that is large beside what a step needs of it, a dense layer, and nothing drawn at random.

args: optimizer (sgd, momentum or adam), steps (how many batches there are before they repeat).
"""

from typing import Any, Callable, Dict

import numpy as np
import tensorflow.compat.v1 as tf

from cluster.task import Task

ROWS, WIDTH, WORDS = 60000, 8, 3  # 1.8 MiB: slices on two and on three servers
OPTIMIZERS: Dict[str, Callable[[], tf.train.Optimizer]] = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.5),
    "momentum": lambda: tf.train.MomentumOptimizer(0.2, 0.9),
    "adam": lambda: tf.train.AdamOptimizer(0.02, epsilon=1e-5),  # larger than gradients that are nothing but rounding
}
INITIAL = np.random.RandomState(0).normal(size=[ROWS, WIDTH]).astype(np.float32)


def examples(number: int) -> Dict[str, np.ndarray]:
    random = np.random.RandomState(1)
    common, rare = random.randint(0, 20, [number, 1]), random.randint(0, ROWS, [number, WORDS - 1])
    words = np.concatenate([common, rare], 1)
    return {"words": words, "y": (words[:, 0] % 2).astype(np.float32)}


def inputs(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    values = examples(int(args["steps"]) * task.batch_size * task.num_workers)
    data = tf.data.Dataset.from_tensor_slices(values).shard(task.num_workers, task.worker_index)
    return data.repeat().batch(task.batch_size, drop_remainder=True)


def model(words: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    table = tf.get_variable("table", [ROWS, WIDTH], initializer=tf.constant_initializer(INITIAL))
    weights = tf.get_variable("weights", [WIDTH], initializer=tf.ones_initializer())
    logits = tf.reduce_sum(tf.reduce_sum(tf.nn.embedding_lookup(table, words), 1) * weights, 1)
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits)


def optimizer(args: Dict[str, Any]) -> tf.train.Optimizer:
    return OPTIMIZERS[args.get("optimizer", "sgd")]()
