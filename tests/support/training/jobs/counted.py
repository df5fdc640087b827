"""A job whose every gradient takes 1 from ``taken`` and from a row of a table: both show how many counted.

args: pause_ms (of each batch), rows (whether there is a table), notes (a folder, whose file ``worker.INDEX`` gets a
byte for each gradient that this process computes; none without), bad (whether an evaluation fails).
"""

import json
import os
import time
from typing import Any, Dict

import tensorflow.compat.v1 as tf

from cluster import embedding
from cluster.task import Task


def inputs(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    def pause(x: Any) -> Any:
        time.sleep(args.get("pause_ms", 0) / 1000)
        return x

    def batch(_: tf.Tensor) -> Dict[str, tf.Tensor]:
        x = tf.py_func(pause, [tf.ones([task.batch_size])], tf.float32)
        x.set_shape([task.batch_size])
        return {"x": x}

    return tf.data.Dataset.range(1).repeat().map(batch)


def evaluate(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    def fail(x: Any) -> Any:
        raise ValueError("no held-out examples today")

    one = tf.data.Dataset.from_tensors({"x": tf.ones([task.batch_size])})
    return one.map(lambda batch: {"x": tf.py_func(fail, [batch["x"]], tf.float32)}) if args.get("bad") else one


def model(x: tf.Tensor, args: Dict[str, Any]) -> tf.Tensor:
    if args.get("notes"):
        noted = tf.py_func(lambda each: _note(args["notes"], each), [x], tf.float32)
        noted.set_shape(x.shape)
        x = noted
    loss = x * tf.get_variable("taken", [], initializer=tf.zeros_initializer())
    if args.get("rows"):
        rows = embedding.table("rows", 1, initializer=tf.zeros_initializer())
        loss += x * embedding.lookup(rows, tf.fill(tf.shape(x), tf.constant(7, tf.int64)))[:, 0]
    return loss


def _note(folder: str, x: Any) -> Any:
    task = json.loads(os.environ["TF_CONFIG"])["task"]
    with open(os.path.join(folder, f"{task['type']}.{task['index']}"), "a") as file:
        file.write(".")
    return x


def optimizer(args: Dict[str, Any]) -> tf.train.Optimizer:
    return tf.train.GradientDescentOptimizer(1.0, use_locking=True)


def counts(checkpoint: str) -> Dict[str, float]:
    """Return what a checkpoint has counted: {"taken", and with a table "embeddings_1/part_0/rows"}."""
    reader = tf.train.load_checkpoint(checkpoint)
    names = ("taken", "embeddings_1/part_0/rows")
    return {name: -float(reader.get_tensor(name).sum()) for name in names if reader.has_tensor(name)}
