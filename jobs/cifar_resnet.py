"""Classify the pictures of CIFAR-10 with ResNet-20 (He et al., "Deep Residual Learning", 2015, section 4.2).

args: data_dir (a folder with CIFAR-10's binary files), seed (0), weight_decay (1.0e-4), and the arguments of
cluster/optimizers.py. The defaults are the paper's, for a global batch of 128.
"""

import functools
from typing import Any, Dict, List, Tuple

import tensorflow.compat.v1 as tf

from cluster.datafiles import data_file, fixed_records
from cluster.layers import batch_norm, classified, convolution, dense
from cluster.optimizers import from_args
from cluster.task import Task

DESCRIBED_AT = "https://www.cs.toronto.edu/~kriz/cifar.html"
TRAIN, TEST = [f"data_batch_{number}.bin" for number in range(1, 6)], ["test_batch.bin"]
RECORD = 1 + 3 * 32 * 32  # bytes: a label, then the red, the green and the blue picture
MEAN, DEVIATION = [125.3, 123.0, 113.9], [63.0, 62.1, 66.7]  # of the channels of the training pictures
DECAY = {"kind": "piecewise", "steps": [32000, 48000], "factors": [0.1, 0.01]}


def records(args: Dict[str, Any], names: List[str]) -> tf.data.Dataset:
    files = [fixed_records(data_file(args, name, DESCRIBED_AT), RECORD) for name in names]
    return functools.reduce(lambda one, other: one.concatenate(other), files)


def picture(record: tf.Tensor) -> Dict[str, tf.Tensor]:
    """Return the picture in ``record``, float32 [32, 32, 3] and normalised, and its class."""
    values = tf.cast(tf.decode_raw(record, tf.uint8), tf.int32)
    x = tf.transpose(tf.reshape(values[1:RECORD], [3, 32, 32]), [1, 2, 0])
    return {"x": (tf.cast(x, tf.float32) - MEAN) / DEVIATION, "y": values[0]}


def inputs(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    """Return pictures shifted by up to four pixels and flipped at random."""
    seed = args.get("seed", 0)

    def augmented(record: tf.Tensor) -> Dict[str, tf.Tensor]:
        example = picture(record)
        x = tf.image.random_crop(tf.pad(example["x"], [[4, 4], [4, 4], [0, 0]]), [32, 32, 3], seed=seed)
        return {**example, "x": tf.image.random_flip_left_right(x, seed=seed)}

    data = records(args, TRAIN).shard(task.num_workers, task.worker_index).shuffle(10000, seed=seed).repeat()
    return data.map(augmented, num_parallel_calls=4).batch(task.batch_size, drop_remainder=True)


def evaluate(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    return records(args, TEST).map(picture).batch(500)


def block(name: str, x: tf.Tensor, filters: int, stride: int, training: bool) -> tf.Tensor:
    """Return the sum of two convolutions of ``x`` and a shortcut, with ``filters`` channels.

    The shortcut drops pixels and adds empty channels if the shape changes.
    """
    with tf.variable_scope(name):
        y = tf.nn.relu(batch_norm("bn1", convolution("conv1", x, filters, stride=stride, bias=False), training))
        y = batch_norm("bn2", convolution("conv2", y, filters, bias=False), training)
        shortcut = tf.pad(x[:, ::stride, ::stride], [[0, 0], [0, 0], [0, 0], [0, filters - x.shape[-1]]])
        return tf.nn.relu(y + shortcut)


def model(x: tf.Tensor, y: tf.Tensor, args: Dict[str, Any], training: bool) -> Tuple[tf.Tensor, Dict[str, tf.Tensor]]:
    x = tf.nn.relu(batch_norm("bn", convolution("conv", x, 16, bias=False), training))
    for stage, filters in enumerate((16, 32, 64)):
        for index in range(3):
            stride = 2 if stage > 0 and index == 0 else 1
            x = block(f"stage{stage + 1}/block{index + 1}", x, filters, stride, training)
    loss, metrics = classified(dense("output", tf.reduce_mean(x, [1, 2]), 10), y)
    weights = [tf.nn.l2_loss(v) for v in tf.trainable_variables() if v.shape.ndims > 1]
    return loss + args.get("weight_decay", 1e-4) * tf.add_n(weights), metrics


def optimizer(args: Dict[str, Any]) -> tf.train.Optimizer:
    return from_args(args, optimizer="momentum", learning_rate=0.1, decay=DECAY)
