"""Classify handwritten digits with a small convolutional network.

args: filters (16), hidden (128), seed (0), and the arguments of cluster/optimizers.py. data/README.md describes the
data.
"""

import os
from typing import Any, Dict, List, Tuple

import numpy as np
import tensorflow.compat.v1 as tf

from cluster.optimizers import from_args
from cluster.task import Task

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "digits.csv.gz")


def examples(held_out: bool) -> Dict[str, np.ndarray]:
    """Return images, [n, 8, 8, 1] from 0 to 1, and their digits [n].

    ``held_out``: return every fifth example, which training does not use; else return all others.
    """
    rows = np.loadtxt(DATA, delimiter=",", dtype=np.float32)
    rows = rows[(np.arange(len(rows)) % 5 == 4) == held_out]
    return {"x": rows[:, :64].reshape(-1, 8, 8, 1) / 16, "y": rows[:, 64].astype(np.int32)}


def inputs(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    data = tf.data.Dataset.from_tensor_slices(examples(held_out=False))
    data = data.shard(task.num_workers, task.worker_index)
    return data.shuffle(2000, seed=args.get("seed", 0)).repeat().batch(task.batch_size, drop_remainder=True)


def evaluate(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(examples(held_out=True)).batch(512)


def layer(name: str, shape: List[int]) -> Tuple[tf.Tensor, tf.Tensor]:
    """Return the weights, of ``shape``, and the bias of the layer ``name``."""
    weights = tf.get_variable(f"{name}/weights", shape, initializer=tf.glorot_uniform_initializer())
    return weights, tf.get_variable(f"{name}/bias", shape[-1:], initializer=tf.zeros_initializer())


def convolution(name: str, x: tf.Tensor, filters: int) -> tf.Tensor:
    weights, bias = layer(name, [3, 3, x.shape[-1], filters])
    return tf.nn.max_pool(tf.nn.relu(tf.nn.conv2d(x, weights, strides=1, padding="SAME") + bias), 2, 2, "SAME")


def model(x: tf.Tensor, y: tf.Tensor, args: Dict[str, Any]) -> Tuple[tf.Tensor, Dict[str, tf.Tensor]]:
    filters, hidden = args.get("filters", 16), args.get("hidden", 128)
    x = convolution("conv2", convolution("conv1", x, filters), 2 * filters)
    x = tf.reshape(x, [-1, 2 * 2 * 2 * filters])
    weights, bias = layer("hidden", [x.shape[-1], hidden])
    x = tf.nn.relu(x @ weights + bias)
    weights, bias = layer("output", [hidden, 10])
    logits = x @ weights + bias
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    return loss, {"accuracy": tf.cast(tf.equal(tf.argmax(logits, 1, output_type=tf.int32), y), tf.float32)}


def optimizer(args: Dict[str, Any]) -> tf.train.Optimizer:
    return from_args(args, learning_rate=0.002)
