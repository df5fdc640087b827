"""Classify handwritten digits with a deep network whose layers are on the stages of a tower (``train.stages``).

args: layers (6), width (64), seed (0), and the arguments of cluster/optimizers.py. data/README.md describes the data.
"""

from typing import Any, Dict, Tuple

import tensorflow.compat.v1 as tf

from cluster.optimizers import from_args
from cluster.stages import stage
from jobs.digits import evaluate, inputs, layer

__all__ = ["evaluate", "inputs", "model", "optimizer"]


def residual(name: str, x: tf.Tensor, width: int) -> tf.Tensor:
    weights, bias = layer(name, [width, width])
    return x + tf.nn.relu(x @ weights + bias)


def model(x: tf.Tensor, y: tf.Tensor, args: Dict[str, Any]) -> Tuple[tf.Tensor, Dict[str, tf.Tensor]]:
    """Return the loss and the accuracy; each layer is a stage; ``train.stages`` devices share the stages in order."""
    layers, width = args.get("layers", 6), args.get("width", 64)
    with stage(0, of=layers):
        weights, bias = layer("first", [64, width])
        x = tf.nn.relu(tf.reshape(x, [-1, 64]) @ weights + bias)
    for index in range(1, layers):
        with stage(index, of=layers):
            x = residual(f"layer{index}", x, width)
    with stage(layers - 1, of=layers):
        weights, bias = layer("output", [width, 10])
        logits = x @ weights + bias
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
        right = tf.equal(tf.argmax(logits, 1, output_type=tf.int32), y)
        return loss, {"accuracy": tf.cast(right, tf.float32)}


def optimizer(args: Dict[str, Any]) -> tf.train.Optimizer:
    return from_args(args, learning_rate=0.002)
