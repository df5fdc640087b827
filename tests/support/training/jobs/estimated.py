"""A job whose functions are those of an Estimator: a model_fn with feature columns, and two input_fns.

args: batch (examples in a batch), learning_rate, optimizer (adagrad or adam).
"""

from typing import Any, Dict, Tuple

import numpy as np
import tensorflow.compat.v1 as tf

from cluster import estimator

_OF_TENSORFLOW = getattr(tf, "estimator", estimator)  # TensorFlow 2.16 has none
Spec, MODES = _OF_TENSORFLOW.EstimatorSpec, _OF_TENSORFLOW.ModeKeys
BATCH, STEPS, WORDS = 16, 6, ["a", "b", "c", "d"]
PARAMS = {"learning_rate": 0.01, "optimizer": "adagrad"}


def examples(number: int) -> Tuple[Dict[str, np.ndarray], np.ndarray]:
    random = np.random.RandomState(3)
    features = {"word": random.choice(WORDS, number), "x": random.uniform(-1, 1, [number, 2]).astype(np.float32)}
    return features, (features["x"][:, :1] + (features["word"] == "b")[:, None] > 0.3).astype(np.float32)


def dataset(number: int, batch: int) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(examples(number)).batch(batch, drop_remainder=True)


def train_input_fn(params: Dict[str, Any]) -> tf.data.Dataset:
    return dataset(STEPS * BATCH, params.get("batch", BATCH)).repeat()


def eval_input_fn() -> tf.data.Dataset:
    return dataset(2 * BATCH, BATCH)


def model_fn(features: Dict[str, Any], labels: Any, mode: str, params: Dict[str, Any]) -> Any:
    of = tf.feature_column
    words = of.categorical_column_with_vocabulary_list("word", WORDS)
    embedded = of.embedding_column(words, 3, initializer=tf.ones_initializer())
    net = of.input_layer(features, [embedded, of.numeric_column("x", shape=[2])])
    kernel = tf.get_variable("kernel", [5, 1], initializer=tf.ones_initializer())
    logits = tf.matmul(net, kernel) + tf.get_variable("bias", [1], initializer=tf.zeros_initializer())
    if mode == MODES.PREDICT:
        return Spec(mode, predictions={"click": tf.nn.sigmoid(logits)})
    loss = tf.losses.sigmoid_cross_entropy(labels, logits) + 0.01 * tf.nn.l2_loss(kernel)
    if mode == MODES.EVAL:
        accuracy = tf.metrics.accuracy(labels, tf.cast(logits > 0, tf.float32))
        return Spec(mode, loss=loss, eval_metric_ops={"accuracy": accuracy})
    optimizer = optimizer_of(params)
    return Spec(mode, loss=loss, train_op=optimizer.minimize(loss, tf.train.get_global_step()))


def optimizer_of(params: Dict[str, Any]) -> tf.train.Optimizer:
    if params["optimizer"] == "adam":
        return tf.train.AdamOptimizer(params["learning_rate"])
    return tf.train.AdagradOptimizer(learning_rate=params["learning_rate"])


inputs, model, optimizer, evaluate, predict = estimator.functions(
    model_fn, train_input_fn, eval_input_fn, params=PARAMS
)
