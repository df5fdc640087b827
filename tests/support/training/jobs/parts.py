"""A job for tests: what each worker reads first is what the args order.

args: shard (read only one's own examples), alike (all examples are one), ragged (a second tensor of that kind).
"""

from typing import Any, Dict

import numpy as np
import tensorflow.compat.v1 as tf

from cluster.task import Task


def inputs(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    numbers = np.zeros([64], np.float32) if args.get("alike") else np.arange(64, dtype=np.float32)
    data = tf.data.Dataset.from_tensor_slices({"x": numbers})
    if args.get("shard"):
        data = data.shard(task.num_workers, task.worker_index)
    data = data.repeat().batch(task.batch_size, drop_remainder=True)
    return data.map(_with_ragged) if args.get("ragged") else data


def _with_ragged(batch: Dict[str, tf.Tensor]) -> Dict[str, Any]:
    return {**batch, "ids": tf.RaggedTensor.from_row_lengths(batch["x"], tf.ones_like(batch["x"], tf.int64))}


def model(x: tf.Tensor, ids: Any = None) -> tf.Tensor:
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    return tf.square(w - x / 64 - (0 if ids is None else tf.reduce_sum(ids, 1) / 64))


def optimizer(args: Dict[str, Any]) -> tf.train.Optimizer:
    return tf.train.GradientDescentOptimizer(0.01)
