"""A job for tests: fixed examples in a fixed order, dense layers and a table that is looked up.

args: optimizer (sgd, momentum or adam), examples (how many there are), endless (repeat them), poison (a step
whose examples are not numbers), poison_one (that step only), slow_s (how long worker 1 takes for each batch).
"""

import time
from typing import Any, Dict

import numpy as np
import tensorflow.compat.v1 as tf

from cluster.task import Task

ROWS = 7
OPTIMIZERS = {
    "sgd": tf.train.GradientDescentOptimizer,
    "momentum": lambda rate: tf.train.MomentumOptimizer(rate, 0.9),
    "adam": tf.train.AdamOptimizer,
}


def examples(number: int) -> Dict[str, np.ndarray]:
    random = np.random.RandomState(0)
    x = random.uniform(-1, 1, [number, 4]).astype(np.float32)
    row = random.randint(0, ROWS, [number]).astype(np.int32)
    return {"x": x, "row": row, "y": (x.sum(1) * row).astype(np.float32)}


def inputs(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    values = examples(int(args["examples"]))
    if "poison" in args:
        batch = task.batch_size * task.num_workers
        start = int(args["poison"]) * batch
        values["x"][start : start + batch if args.get("poison_one") else None] = np.nan
    data = tf.data.Dataset.from_tensor_slices(values).shard(task.num_workers, task.worker_index)
    if args.get("endless"):
        data = data.repeat()
    if args.get("slow_s") and task.worker_index == 1:
        data = data.map(lambda item: _slowly(item, float(args["slow_s"]) / task.batch_size))
    return data.batch(task.batch_size, drop_remainder=True)


def _slowly(item: Dict[str, tf.Tensor], seconds: float) -> Dict[str, tf.Tensor]:
    def pause(row: np.int32) -> np.int32:
        time.sleep(seconds)
        return row

    row = tf.py_func(pause, [item["row"]], tf.int32)
    row.set_shape([])
    return {**item, "row": row}


def model(x: tf.Tensor, row: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    hidden = tf.get_variable("hidden", [4, 8], initializer=tf.random_normal_initializer(stddev=0.5, seed=1))
    output = tf.get_variable("output", [8], initializer=tf.random_normal_initializer(stddev=0.5, seed=2))
    table = tf.get_variable("table", [ROWS, 8], initializer=tf.random_normal_initializer(stddev=0.5, seed=3))
    features = tf.tanh(x @ hidden) + tf.gather(table, row)
    return tf.square(tf.reduce_sum(features * output, 1) - y)


def optimizer(args: Dict[str, Any]) -> tf.train.Optimizer:
    return OPTIMIZERS[args.get("optimizer", "sgd")](0.02)
