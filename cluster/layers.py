"""Layers for a job's model on ``tf.get_variable``: they work alike on TensorFlow 1.15 and 2.x.

TensorFlow 2.x with Keras 3 has no ``tf.layers``, so these few stand in for it. Every ``name``
is a variable scope of its own.
"""

from typing import Any, Dict, Tuple

from cluster.runtime.tf_compat import tf


def dense(name: str, x: Any, units: int) -> Any:
    """Return a fully connected layer with a bias: [batch, n] to [batch, units]."""
    with tf.variable_scope(name):
        weights = tf.get_variable("weights", [x.shape[-1], units], initializer=tf.glorot_uniform_initializer())
        return x @ weights + tf.get_variable("bias", [units], initializer=tf.zeros_initializer())


def convolution(name: str, x: Any, filters: int, size: int = 3, stride: int = 1, bias: bool = True) -> Any:
    """Return a convolution with a square kernel: [batch, h, w, n] to [batch, h / stride, w / stride, filters]."""
    with tf.variable_scope(name):
        initial = tf.variance_scaling_initializer(2.0)  # He et al., "Delving Deep into Rectifiers", 2015
        kernel = tf.get_variable("kernel", [size, size, x.shape[-1], filters], initializer=initial)
        y = tf.nn.conv2d(x, kernel, strides=stride, padding="SAME")
        return y + tf.get_variable("bias", [filters], initializer=tf.zeros_initializer()) if bias else y


def batch_norm(name: str, x: Any, training: bool, momentum: float = 0.9, epsilon: float = 1e-3) -> Any:
    """Batch normalisation over all axes but the last (Ioffe and Szegedy, 2015).

    In training a tower's own batch gives mean and variance, and the moving averages are
    updated by operations in ``tf.GraphKeys.UPDATE_OPS``: the chief's first tower runs them,
    once with each of its gradients. Otherwise the moving averages are used.

    Args:
      x: float32 [batch, …, channels], of known rank and channels.
      training: what a model gets in its parameter ``training``.
      momentum: how much of a moving average a step keeps.

    Returns:
      A tensor like ``x``.
    """
    with tf.variable_scope(name):
        channels = [x.shape[-1]]
        scale = tf.get_variable("scale", channels, initializer=tf.ones_initializer())
        offset = tf.get_variable("offset", channels, initializer=tf.zeros_initializer())
        means = tf.get_variable("mean", channels, initializer=tf.zeros_initializer(), trainable=False)
        variances = tf.get_variable("variance", channels, initializer=tf.ones_initializer(), trainable=False)
        flat = x if x.shape.ndims == 4 else tf.reshape(x, [-1, 1, 1, x.shape[-1]])
        known = (None, None) if training else (means, variances)
        y, mean, variance = tf.nn.fused_batch_norm(flat, scale, offset, *known, epsilon=epsilon, is_training=training)
        if training:
            for average, value in ((means, mean), (variances, variance)):
                tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, _move(average, value, momentum))
        return y if x.shape.ndims == 4 else tf.reshape(y, tf.shape(x))


def classified(logits: Any, labels: Any) -> Tuple[Any, Dict[str, Any]]:
    """Return the loss and the accuracy of a model of classes, per example.

    The loss is the cross entropy of each example; the accuracy is 1 where its class was found, else 0.

    Args:
      logits: float32 [batch, classes].
      labels: int32 [batch].
    """
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    right = tf.equal(tf.argmax(logits, 1, output_type=tf.int32), labels)
    return loss, {"accuracy": tf.cast(right, tf.float32)}


def _move(average: Any, value: Any, momentum: float) -> Any:
    """Make the operation that moves ``average`` towards ``value``, on its server: only ``value`` travels.

    A value that is not finite is passed over: one bad batch must not spoil the average for good.
    """
    with tf.device(average.device):
        before = average.read_value()
        difference = tf.where(tf.math.is_finite(value), before - value, tf.zeros_like(before))
        return tf.assign_sub(average, difference * (1 - momentum)).op
