"""A job for tests: dense variables that are too large for one server, from values that are not drawn at random."""

import numpy as np
import tensorflow.compat.v1 as tf

from tests.support.training.jobs.words import examples as examples
from tests.support.training.jobs.words import inputs as inputs
from tests.support.training.jobs.words import optimizer as optimizer

UNITS = 200000
INITIAL = np.random.RandomState(2).normal(size=[1, UNITS]).astype(np.float32)  # 0.8 MB, cut along its second axis


def model(words: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    layer = tf.get_variable("layer", INITIAL.shape, initializer=tf.constant_initializer(INITIAL))
    output = tf.get_variable("output", [8], initializer=tf.ones_initializer())
    features = tf.cast(words[:, :1], tf.float32) / 20
    hidden = tf.reduce_mean(tf.reshape(tf.tanh(features @ layer), [-1, 8, UNITS // 8]), 2)
    return tf.square(tf.reduce_sum(hidden * output, 1) - y)
