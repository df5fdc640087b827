"""A model that uses one layer of Keras twice, and then in a loop."""

from typing import Any

from cluster.runtime.tf_compat import tf


def inputs(task: Any, args: Any) -> Any:
    return tf.data.Dataset.from_tensors({"x": tf.ones([task.batch_size, 3])}).repeat()


def model(x: Any) -> Any:
    layer = tf.keras.layers.Dense(3, name="dense")
    twice = layer(layer(x))
    return tf.reduce_sum(
        tf.while_loop(lambda index, _: index < 3, lambda index, h: (index + 1, layer(h)), [0, twice])[1], 1
    )


def optimizer(args: Any) -> Any:
    return tf.train.GradientDescentOptimizer(0.1)
