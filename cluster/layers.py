"""Layers for a job's model on ``tf.get_variable``, with the same behaviour on TensorFlow 1.15 and 2.x.

TensorFlow 2.x with Keras 3 has no ``tf.layers``; these few layers replace it. Every ``name`` is a separate variable
scope.
"""

from typing import Any, Dict, Tuple

from cluster.runtime.tf_compat import tf


def dense(name: str, x: Any, units: int) -> Any:
    """Return the output of a fully connected layer with a bias: ``x`` is [batch, n], the result [batch, units]."""
    with tf.variable_scope(name):
        weights = tf.get_variable("weights", [x.shape[-1], units], initializer=tf.glorot_uniform_initializer())
        return x @ weights + tf.get_variable("bias", [units], initializer=tf.zeros_initializer())


def convolution(name: str, x: Any, filters: int, size: int = 3, stride: int = 1, bias: bool = True) -> Any:
    """Return the output of a convolution with a kernel of ``size`` × ``size``, and with zeros around ``x``.

    ``x`` is [batch, h, w, n]. The result is [batch, h / stride, w / stride, filters], both quotients rounded up.
    """
    with tf.variable_scope(name):
        initial = tf.variance_scaling_initializer(2.0)  # He et al., "Delving Deep into Rectifiers", 2015
        kernel = tf.get_variable("kernel", [size, size, x.shape[-1], filters], initializer=initial)
        y = tf.nn.conv2d(x, kernel, strides=stride, padding="SAME")
        return y + tf.get_variable("bias", [filters], initializer=tf.zeros_initializer()) if bias else y


def batch_norm(name: str, x: Any, training: bool, momentum: float = 0.9, epsilon: float = 1e-3) -> Any:
    """Return ``x`` after batch normalisation over all axes but the last (Ioffe and Szegedy, 2015).

    In training, the layer uses the mean and the variance of the tower's own batch. Operations in
    ``tf.GraphKeys.UPDATE_OPS`` update the moving averages of both. The chief's first tower runs these operations, once
    with each of its gradients. Otherwise, the layer uses the moving averages.

    Args:
      x: float32 [batch, …, channels], of known rank and channels.
      training: the model's parameter ``training``.
      momentum: the part of a moving average that an update keeps.
      epsilon: a small number that is added to the variance.

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
    """Return the loss per example of a classifier, and the metric ``accuracy`` by its name.

    The loss is the cross entropy of each example; the accuracy is 1 where the predicted class is the label, else 0.

    Args:
      logits: float32 [batch, classes].
      labels: int32 [batch].
    """
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    right = tf.equal(tf.argmax(logits, 1, output_type=tf.int32), labels)
    return loss, {"accuracy": tf.cast(right, tf.float32)}


def _move(average: Any, value: Any, momentum: float) -> Any:
    """Return the operation that moves ``average`` towards ``value``, on its server: only ``value`` is sent.

    A value that is not finite is skipped: one bad batch must not spoil the average permanently.
    """
    with tf.device(average.device):
        before = average.read_value()
        difference = tf.where(tf.math.is_finite(value), before - value, tf.zeros_like(before))
        return tf.assign_sub(average, difference * (1 - momentum)).op
