"""A job for tests: ``clicks`` with a dense variable whose gradient is ready long after those of rows.

So a worker that is killed in a step has mostly given the gradients of rows, and not this one.
"""

import time
from typing import Any, Callable, Tuple

import tensorflow.compat.v1 as tf

from tests.support.training.jobs import clicks

LATE_S = 0.3

inputs, optimizer = clicks.inputs, clicks.optimizer


def model(user: tf.Tensor, words: tf.Tensor, hour: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    bias = late(tf.get_variable("bias", [], initializer=tf.zeros_initializer(), use_resource=True))
    return clicks.model(user, words, hour, y) + tf.square(bias - y)


@tf.custom_gradient
def late(value: tf.Tensor) -> Tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
    def backwards(grad: tf.Tensor) -> tf.Tensor:
        came = tf.py_func(_after_a_while, [grad], tf.float32)
        came.set_shape(grad.shape)
        return came

    return tf.identity(value), backwards


def _after_a_while(value: Any) -> Any:
    time.sleep(LATE_S)
    return value
