"""A job with whatever ``launch verify`` must get right: a table, slices, averages, batches that vary in size.

args: optimizer and learning_rate (see cluster/optimizers.py), subclass (one of the author's own), width of the hidden
layer, uneven (batches vary in size), shuffle (with a seed, by the graph's seed, or not twice alike), draws (random
numbers in the model), average (of what comes in, which the next step uses).
"""

from typing import Any, Dict

import numpy as np
import tensorflow.compat.v1 as tf

from cluster.optimizers import from_args
from cluster.task import Task

ROWS, FEATURES, EXAMPLES = 50, 7, 480


class Shrinking(tf.train.GradientDescentOptimizer):  # type: ignore[misc]
    """Draws large variables to zero, as an optimizer does that looks at whole ones."""

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Any = None) -> Any:
        pairs = [(tf.convert_to_tensor(grad) + 0.01 * variable, variable) for grad, variable in grads_and_vars]
        return super().apply_gradients(pairs, global_step, name)


def examples() -> Dict[str, np.ndarray]:
    """x [n, 7], ids [n, 3], y [n]."""
    random = np.random.RandomState(1)
    x = random.normal(size=[EXAMPLES, FEATURES]).astype(np.float32)
    return {"x": x, "ids": random.randint(0, ROWS, [EXAMPLES, 3]), "y": np.sin(x.sum(1)).astype(np.float32)}


def inputs(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    data = tf.data.Dataset.from_tensor_slices(examples()).shard(task.num_workers, task.worker_index)
    if "shuffle" in args:
        data = data.shuffle(EXAMPLES, seed=7 if args["shuffle"] == "seed" else None)
    if args.get("uneven"):  # the last batch of each epoch is small
        return data.take(3 * task.batch_size + 2 + task.worker_index).batch(task.batch_size).repeat()
    return data.repeat().batch(task.batch_size, drop_remainder=True)


def model(x: Any, ids: Any, y: Any, args: Dict[str, Any]) -> Any:
    width = args.get("width", 5)
    table = tf.get_variable("table", [ROWS, 3], initializer=tf.random_normal_initializer(stddev=0.5))
    first = tf.get_variable("first", [FEATURES, width], initializer=tf.glorot_uniform_initializer())
    last = tf.get_variable("last", [width + 3, 1], initializer=tf.glorot_uniform_initializer())
    bias = tf.get_variable("bias", [], initializer=tf.zeros_initializer())
    if args.get("average"):
        x -= _average(x)
    if args.get("draws"):
        x = tf.nn.dropout(x, rate=0.1)
    looked_up = tf.reduce_sum(tf.nn.embedding_lookup(table, ids), 1)
    return tf.square(tf.squeeze(tf.concat([tf.nn.relu(x @ first), looked_up], 1) @ last, 1) + bias - y)


def _average(x: Any) -> Any:
    """What was known of the mean before this step."""
    mean = tf.get_variable("mean", [FEATURES], initializer=tf.zeros_initializer(), trainable=False)
    known = mean.read_value()
    moved = tf.assign_sub(mean, 0.1 * (known - tf.reduce_mean(x, 0)))
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, moved)
    return known


def optimizer(args: Dict[str, Any]) -> tf.train.Optimizer:
    return Shrinking(0.05) if args.get("subclass") else from_args(args, optimizer="sgd", learning_rate=0.05)
