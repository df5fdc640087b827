"""Jobs for runs that go on until a test ends them."""

# Takes ten steps a second at a batch size of 2: what looks at the run needs the processor, too.
CALM = """
import time
import numpy as np
import tensorflow.compat.v1 as tf

def rest(i):
    time.sleep(0.05)
    return np.float32(i / 1000)

def example(i):
    x = tf.py_func(rest, [i], tf.float32)
    x.set_shape([])
    return {"x": x, "y": 2 * x}

def inputs(task, args):
    return tf.data.Dataset.range(1000).map(example).repeat().batch(task.batch_size)

def model(x, y):
    return tf.square(tf.get_variable("slope", []) * x - y)

def optimizer(args):
    return tf.train.GradientDescentOptimizer(0.1)
"""
