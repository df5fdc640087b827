"""What goes by the number of the step: rates, and weights of terms."""

from typing import Any

import tensorflow.compat.v1 as tf

from tests.differential.authors import author
from tests.differential.losses import EPSILON, Args, error_of, sgd, square, through


def _model(x: Any, y: Any, args: Args) -> Any:
    return error_of(through(x, square(args)), y)


def _step() -> Any:
    return tf.train.get_or_create_global_step()


def _decayed(args: Args) -> Any:
    return tf.train.GradientDescentOptimizer(tf.train.exponential_decay(0.3, _step(), 2, 0.5, staircase=True))


@author(_decayed)
def exponential_decay(x: Any, y: Any, args: Args) -> Any:
    """tf.train.exponential_decay by the global step."""
    return _model(x, y, args)


def _warmed_up(args: Args) -> Any:
    step = tf.cast(_step(), tf.float32)
    rate = tf.where(step < 2, 0.05 * (step + 1), tf.train.cosine_decay(0.2, _step(), 6))
    return tf.train.MomentumOptimizer(rate, 0.9)


@author(_warmed_up)
def warmup_and_cosine(x: Any, y: Any, args: Args) -> Any:
    """A warmup and a cosine, with momentum."""
    return _model(x, y, args)


def _piecewise(args: Args) -> Any:
    return tf.train.AdamOptimizer(tf.train.piecewise_constant(_step(), [1, 3], [0.05, 0.01, 0.002]), epsilon=EPSILON)


@author(_piecewise)
def piecewise(x: Any, y: Any, args: Args) -> Any:
    """tf.train.piecewise_constant with Adam."""
    return _model(x, y, args)


def _scheduled_lars(args: Args) -> Any:
    class Trusting(tf.train.MomentumOptimizer):  # type: ignore[misc]
        """A momentum optimizer with a trust ratio."""

        def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Any = None) -> Any:
            """Scales each gradient by the length of its variable."""
            pairs = [(grad * (0.1 + tf.norm(variable)), variable) for grad, variable in grads_and_vars]
            return super().apply_gradients(pairs, global_step, name)

    return Trusting(tf.train.polynomial_decay(0.1, _step(), 4), 0.9)


@author(_scheduled_lars)
def scheduled_subclass(x: Any, y: Any, args: Args) -> Any:
    """A schedule for a subclass that uses norms."""
    return _model(x, y, args)


@author(sgd)
def annealed_term(x: Any, y: Any, args: Args) -> Any:
    """A term that grows by tf.train.get_global_step() in the model, as the KL divergence of a VAE does."""
    hidden = through(x, square(args))
    weight = tf.minimum(1.0, tf.cast(tf.train.get_global_step(), tf.float32) / 3)
    return error_of(hidden, y) + weight * tf.reduce_mean(tf.square(hidden), 1)


@author(sgd)
def schedule_in_the_model(x: Any, y: Any, args: Args) -> Any:
    """A branch by the step, as models that begin with another loss have."""
    hidden = through(x, square(args))
    early = tf.train.get_or_create_global_step() < 2
    return tf.cond(early, lambda: tf.reduce_sum(tf.square(hidden), 1), lambda: 1.0 * error_of_once(hidden, y))


def error_of_once(hidden: Any, y: Any) -> Any:
    """The error without variables of its own."""
    return tf.square(tf.reduce_mean(hidden, 1) - y)


class OwnRate(tf.train.GradientDescentOptimizer):  # type: ignore[misc]
    """Keeps the rate in a variable of its own, which it halves in each step."""

    def __init__(self, rate: float):
        self._kept = tf.get_variable("rate", [], initializer=tf.constant_initializer(rate), trainable=False)
        super().__init__(self._kept)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Any = None) -> Any:
        """Halves the rate after the update."""
        applied = super().apply_gradients(grads_and_vars, global_step, name)
        with tf.control_dependencies([applied]):
            return tf.group(tf.assign(self._kept, self._kept * 0.5))


@author(lambda args: OwnRate(0.3))
def rate_in_a_variable(x: Any, y: Any, args: Args) -> Any:
    """An optimizer with a variable of its own, which it assigns."""
    return _model(x, y, args)
