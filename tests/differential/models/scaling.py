"""Loss scaling: static, and dynamic with and without overflows."""

from typing import Any, List, Tuple

import tensorflow.compat.v1 as tf

from tests.differential.authors import author
from tests.differential.losses import Args, error_of, square, through

GradsAndVars = List[Tuple[Any, Any]]
_IGNORING = {"on_nan": "ignore"}


def _model(x: Any, y: Any, args: Args) -> Any:
    return error_of(through(x, square(args)), y)


class StaticScale(tf.train.MomentumOptimizer):  # type: ignore[misc]
    """Scales the loss by 1024, and gradients back."""

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> GradsAndVars:
        """The true gradients, by way of larger ones."""
        found = super().compute_gradients(loss * 1024.0, *args, **kwargs)
        return [(None if grad is None else grad / 1024.0, variable) for grad, variable in found]


@author(lambda args: StaticScale(0.1, 0.9))
def static_scale(x: Any, y: Any, args: Args) -> Any:
    """A constant scale of the loss in compute_gradients."""
    return _model(x, y, args)


class DynamicScale(tf.train.GradientDescentOptimizer):  # type: ignore[misc]
    """Takes a smaller scale when a gradient overflows, and leaves that step out; doubles it after two good ones."""

    def __init__(self, rate: float, scale: float):
        super().__init__(rate)
        self._scale = tf.get_variable("loss_scale", [], initializer=tf.constant_initializer(scale), trainable=False)
        self._good = tf.get_variable("good_steps", [], tf.int32, initializer=tf.zeros_initializer(), trainable=False)

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> GradsAndVars:
        """The true gradients, by way of larger ones."""
        found = super().compute_gradients(loss * self._scale, *args, **kwargs)
        return [(None if grad is None else grad / self._scale, variable) for grad, variable in found]

    def apply_gradients(self, grads_and_vars: GradsAndVars, global_step: Any = None, name: Any = None) -> Any:
        """Applies them if all are finite, then moves the scale."""
        pairs = [(grad, variable) for grad, variable in grads_and_vars if grad is not None]
        finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(grad)) for grad, _ in pairs])
        zeroed = [(tf.where(tf.fill(tf.shape(grad), finite), grad, tf.zeros_like(grad)), v) for grad, v in pairs]
        applied = super().apply_gradients(zeroed, global_step, name)
        with tf.control_dependencies([applied]):
            return tf.group(*self._moved(finite))

    def _moved(self, finite: Any) -> List[Any]:
        full = tf.equal(self._good, 1)
        grown = tf.where(full, self._scale * 2, tf.identity(self._scale))
        good = tf.where(finite & ~full, self._good + 1, tf.zeros_like(self._good))
        scale = tf.where(finite, grown, self._scale / 2.0**16)
        with tf.control_dependencies([good, scale]):
            return [tf.assign(self._scale, scale), tf.assign(self._good, good)]


@author(lambda args: DynamicScale(0.1, 1024.0), settings=_IGNORING)
def dynamic_scale(x: Any, y: Any, args: Args) -> Any:
    """A scale that grows, without overflows."""
    return _model(x, y, args)


@author(lambda args: DynamicScale(0.1 / 64, 2.0**126), settings=_IGNORING)
def dynamic_scale_overflowing(x: Any, y: Any, args: Args) -> Any:
    """A scale at which the first step overflows."""
    return 64.0 * _model(x, y, args)


@author(
    lambda args: tf.train.experimental.MixedPrecisionLossScaleOptimizer(
        tf.train.GradientDescentOptimizer(0.1), tf.train.experimental.FixedLossScale(256.0)
    )
)
def tensorflow_fixed_scale(x: Any, y: Any, args: Args) -> Any:
    """TensorFlow's own MixedPrecisionLossScaleOptimizer with a fixed scale."""
    return _model(x, y, args)


@author(
    lambda args: tf.train.experimental.MixedPrecisionLossScaleOptimizer(
        tf.train.MomentumOptimizer(0.1, 0.9),
        tf.train.experimental.DynamicLossScale(initial_loss_scale=2.0**10, increment_period=2),
    ),
    settings=_IGNORING,
)
def tensorflow_dynamic_scale(x: Any, y: Any, args: Args) -> Any:
    """TensorFlow's own MixedPrecisionLossScaleOptimizer with a scale that grows."""
    return _model(x, y, args)


@author(lambda args: StaticScale(0.1, 0.9), half=True)
def half_precision(x: Any, y: Any, args: Args) -> Any:
    """Masters of float32 whose products are computed in float16."""
    product = tf.matmul(tf.cast(x, tf.float16), tf.cast(square(args), tf.float16))
    return error_of(tf.tanh(tf.cast(product, tf.float32)), y)
