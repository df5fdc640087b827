"""The variables of a well-known model with almost no arithmetic, to measure everything except the GPU.

As in a real model, every variable is read, and no gradient exists before all variables have been read. The gradients
are dense and of full size, but cost no more than filling memory. Only ``embedding`` looks up rows.

args: model (vgg16, resnet50, bert_base or embedding), rows (10000000), width (16) and lookups (26) for embedding, and
the arguments of cluster/optimizers.py (default: sgd).
"""

from typing import Any, Dict, List

import tensorflow.compat.v1 as tf

from cluster.errors import JobError
from cluster.optimizers import from_args
from cluster.task import Task


def vgg16() -> List[List[int]]:
    """Return the variables' shapes by Simonyan and Zisserman, 2014, in configuration D for ImageNet.

    They have 138,357,544 values.
    """
    filters = [3, 64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512]
    layers = [[3, 3, a, b] for a, b in zip(filters, filters[1:])] + [[25088, 4096], [4096, 4096], [4096, 1000]]
    return [shape for layer in layers for shape in (layer, layer[-1:])]


def resnet50() -> List[List[int]]:
    """Return the variables' shapes by He et al., 2015, for ImageNet: 25,557,032 values.

    Each convolution has a scale and an offset.
    """
    layers, before = [[7, 7, 3, 64]], 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        layers.append([1, 1, before, 4 * width])  # projection in the first block's shortcut
        for _ in range(blocks):
            layers += [[1, 1, before, width], [3, 3, width, width], [1, 1, width, 4 * width]]
            before = 4 * width
    return [shape for layer in layers for shape in (layer, layer[-1:], layer[-1:])] + [[2048, 1000], [1000]]


def bert_base() -> List[List[int]]:
    """Return the variables' shapes by Devlin et al., 2018, with the pooler and without heads: 109,482,240 values."""
    norm = [[768], [768]]
    layer = 4 * [[768, 768], [768]] + norm + [[768, 3072], [3072], [3072, 768], [768]] + norm
    return [[30522, 768], [512, 768], [2, 768], *norm, *(12 * layer), [768, 768], [768]]


MODELS = {"vgg16": vgg16, "resnet50": resnet50, "bert_base": bert_base}


def inputs(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    rows, lookups, seed = args.get("rows", 10000000), args.get("lookups", 26), task.worker_index

    def batch(_: tf.Tensor) -> Dict[str, tf.Tensor]:
        return {"rows": tf.random_uniform([task.batch_size, lookups], 0, rows, tf.int32, seed=seed)}

    return tf.data.Dataset.range(1).repeat().map(batch)


def model(rows: tf.Tensor, args: Dict[str, Any]) -> tf.Tensor:
    name, zeros = args.get("model", "resnet50"), tf.zeros_initializer()
    if name == "embedding":
        table = tf.get_variable("table", [args.get("rows", 10000000), args.get("width", 16)], initializer=zeros)
        return tf.square(tf.reduce_mean(tf.nn.embedding_lookup(table, rows), [1, 2]) - 1)
    if name not in MODELS:
        raise JobError(f"args.model: expected one of embedding, {', '.join(MODELS)}, found {name!r}")
    values = [tf.get_variable(f"v{index:03}", shape, initializer=zeros) for index, shape in enumerate(MODELS[name]())]
    # Each has a different weight: TensorFlow would merge equal gradients into one tensor, and send it only once.
    mean = tf.add_n([tf.reduce_mean(value) / (index + 1) for index, value in enumerate(values)]) / len(values)
    return tf.square(mean - 1) * tf.ones_like(rows[:, 0], tf.float32)


def optimizer(args: Dict[str, Any]) -> tf.train.Optimizer:
    return from_args(args, optimizer="sgd", learning_rate=0.1)
