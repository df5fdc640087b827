"""Layers of Keras and of tf.layers."""

from typing import Any

import tensorflow.compat.v1 as tf

from tests.differential.authors import author
from tests.differential.data import wide_and_deep
from tests.differential.losses import Args, adam, sgd
from tests.differential.values import first, made, starting


def _dense(name: str, width: int, **asked: Any) -> Any:
    return tf.keras.layers.Dense(width, name=name, kernel_initializer=_Waves(name), **asked)


class _Waves(tf.keras.initializers.Initializer):  # type: ignore[misc]
    """The formula's first values, for layers that make their own variables."""

    def __init__(self, name: str):
        self._name = name

    def __call__(self, shape: Any, dtype: Any = None, **_: Any) -> Any:
        sizes = [int(size) for size in shape]
        return tf.constant(first(self._name, sizes, 0.7 if sizes[-1] > 1 else 4 / sizes[0] ** 0.5))


def _error(output: Any, y: Any) -> Any:
    return tf.square(tf.squeeze(output, 1) / 4 - y)


@author(sgd)
def keras_layers(x: Any, y: Any, args: Args) -> Any:
    """tf.keras.layers.Dense, made again in each call of the model."""
    width = int(args["width"])
    hidden = _dense("hidden", width, activation="tanh")(x)
    return _error(_dense("output", 1)(hidden), y)


@author(adam)
def keras_model(x: Any, y: Any, args: Args) -> Any:
    """A functional tf.keras.Model."""
    width = int(args["width"])
    entry = tf.keras.Input([width])
    middle = _dense("middle", width, activation="tanh")(entry)
    network = tf.keras.Model(entry, _dense("last", 1)(middle))
    return _error(network(x), y)


@author(sgd)
def keras_layer_decayed(x: Any, y: Any, args: Args) -> Any:
    """A Keras layer, whose weights are decayed by its trainable_weights."""
    width = int(args["width"])
    layer = _dense("hidden", width, activation="tanh")
    output = _dense("output", 1)(layer(x))
    return _error(output, y) + 0.2 * tf.nn.l2_loss(tf.convert_to_tensor(layer.trainable_weights[0]))


@author(sgd)
def keras_constraint_of_layer(x: Any, y: Any, args: Args) -> Any:
    """A Keras layer with kernel_constraint."""
    width = int(args["width"])
    limited = _dense("hidden", width, kernel_constraint=tf.keras.constraints.MaxNorm(0.4))
    return _error(_dense("output", 1)(tf.tanh(limited(x))), y)


@author(sgd, runtimes=("tf1",))
def tf_layers(x: Any, y: Any, args: Args) -> Any:
    """tf.layers.dense with a regularizer, which TensorFlow 2 with Keras 3 no longer has."""
    width = int(args["width"])
    hidden = tf.layers.dense(
        x,
        width,
        tf.tanh,
        kernel_initializer=starting("k", [width, width]),
        kernel_regularizer=lambda w: 0.2 * tf.nn.l2_loss(w),
        name="hidden",
    )
    output = tf.layers.dense(hidden, 1, kernel_initializer=starting("o", [width, 1], 4 / width**0.5), name="output")
    return _error(output, y) + tf.losses.get_regularization_loss()


@author(sgd, same=True, runtimes=("tf1",))
def tf_layers_batch_normalization(x: Any, y: Any, args: Args) -> Any:
    """tf.layers.batch_normalization, whose averages are moved by UPDATE_OPS."""
    width = int(args["width"])
    kernel = starting("k", [width, width])
    hidden = tf.layers.dense(x, width, kernel_initializer=kernel, use_bias=False, name="hidden")
    hidden = tf.tanh(tf.layers.batch_normalization(hidden, momentum=0.9, epsilon=0.1, training=True, name="norm"))
    return _error(
        tf.layers.dense(hidden, 1, kernel_initializer=starting("o", [width, 1], 4 / width**0.5), name="output"), y
    )


@author(sgd, wide_and_deep)
def feature_columns(x: Any, ids: Any, y: Any, args: Args) -> Any:
    """tf.feature_column.input_layer with an embedding and numbers."""
    rows, width = int(args["rows"]), int(args["width"])
    column = tf.feature_column.categorical_column_with_identity("ids", rows)
    embedding = tf.feature_column.embedding_column(column, 8, initializer=starting("embedding", [rows, 8], 3.0))
    numbers = tf.feature_column.numeric_column("x", [width])
    features = tf.feature_column.input_layer({"x": x, "ids": tf.cast(ids, tf.int64)}, [embedding, numbers])
    return tf.square(tf.reduce_sum(features * made("v", [8 + width]), 1) / width**0.5 - y)
