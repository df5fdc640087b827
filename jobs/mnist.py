"""Classify MNIST's handwritten digits with a convolutional network.

args: data_dir (a folder with the four IDX files, gzipped or not), hidden (256), seed (0), and the arguments of
cluster/optimizers.py.
"""

import gzip
import struct
from typing import Any, Dict, Tuple

import tensorflow.compat.v1 as tf

from cluster.datafiles import damaged, data_file
from cluster.layers import classified, convolution, dense
from cluster.optimizers import from_args
from cluster.task import Task

DESCRIBED_AT = "http://yann.lecun.com/exdb/mnist"
SIDE = 28  # pixels


def records(path: str, *shape: int) -> tf.data.Dataset:
    """Return the items of the IDX file ``path``, each a uint8 tensor of ``shape``."""
    packed = path.endswith(".gz")
    opened: Any = gzip.open if packed else open
    with opened(path, "rb") as file:
        head = file.read(8 + 4 * len(shape))
    expected = struct.pack(">HBB", 0, 8, 1 + len(shape)), struct.pack(f">{len(shape)}i", *shape)
    if (head[:4], head[8:]) != expected:
        raise damaged(path, f"an IDX file of bytes with items of shape {list(shape)}", f"the header {head.hex()}")
    size = int(tf.TensorShape(shape).num_elements())
    items = tf.data.FixedLengthRecordDataset(path, size, len(head), compression_type="GZIP" if packed else "")
    return items.map(lambda item: tf.reshape(tf.decode_raw(item, tf.uint8), shape))


def examples(args: Dict[str, Any], part: str) -> tf.data.Dataset:
    """Return the images, uint8 [28, 28], and their digits, from the files of one ``part``: train or t10k."""
    images = records(data_file(args, f"{part}-images-idx3-ubyte", DESCRIBED_AT), SIDE, SIDE)
    digits = records(data_file(args, f"{part}-labels-idx1-ubyte", DESCRIBED_AT))
    return tf.data.Dataset.zip({"x": images, "y": digits})


def inputs(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    data = examples(args, "train").shard(task.num_workers, task.worker_index)
    data = data.cache().shuffle(10000, seed=args.get("seed", 0))
    return data.repeat().batch(task.batch_size, drop_remainder=True)


def evaluate(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    return examples(args, "t10k").batch(500)


def model(x: tf.Tensor, y: tf.Tensor, args: Dict[str, Any]) -> Tuple[tf.Tensor, Dict[str, tf.Tensor]]:
    x, y = tf.cast(x, tf.float32)[..., tf.newaxis] / 255, tf.cast(y, tf.int32)
    for name, filters in (("conv1", 32), ("conv2", 64)):
        x = tf.nn.max_pool(tf.nn.relu(convolution(name, x, filters)), 2, 2, "SAME")
    x = tf.nn.relu(dense("hidden", tf.reshape(x, [-1, 7 * 7 * 64]), args.get("hidden", 256)))
    return classified(dense("output", x, 10), y)


def optimizer(args: Dict[str, Any]) -> tf.train.Optimizer:
    return from_args(args, learning_rate=0.001)
