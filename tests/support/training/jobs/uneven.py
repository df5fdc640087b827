"""A job whose workers are not equally quick.

args: pause_s, for each worker the seconds that every one of its batches takes.
"""

import time
from typing import Any, Dict

import numpy as np
import tensorflow.compat.v1 as tf

from cluster.task import Task


def inputs(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    pause_s = args["pause_s"][task.worker_index]

    def pause(x: Any) -> Any:
        time.sleep(pause_s)
        return x

    data = tf.data.Dataset.from_tensors(np.ones([4], np.float32)).repeat().batch(task.batch_size)

    def paused(x: Any) -> Dict[str, Any]:
        batch = tf.numpy_function(pause, [x], tf.float32)
        batch.set_shape([task.batch_size, 4])
        return {"x": batch}

    return data.map(paused)


def model(x: Any) -> Any:
    weights = tf.get_variable("weights", [4], initializer=tf.zeros_initializer())
    return tf.square(tf.reduce_sum(x * weights, 1) - 1)


def optimizer(args: Dict[str, Any]) -> tf.train.Optimizer:
    return tf.train.GradientDescentOptimizer(0.01)
