"""Optimizers, and what authors wrap around them."""

from typing import Any, Dict, List, Tuple

import tensorflow.compat.v1 as tf

from tests.differential.constructions.axes import Construction
from tests.differential.constructions.updates import OWN_UPDATES
from tests.differential.losses import EPSILON

GradsAndVars = List[Tuple[Any, Any]]
_FIRST_SCALE = 2.0**125  # two more doublings, and most gradients of the whole batch overflow
_LAST_SCALE = 2.0**127


class Regularized(tf.train.Optimizer):  # type: ignore[misc]
    """Passes the loss and the graph's regularization on."""

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> GradsAndVars:
        """The gradients of both."""
        found: GradsAndVars = super().compute_gradients(loss + tf.losses.get_regularization_loss(), *args, **kwargs)
        return found


class Decaying(tf.train.Optimizer):  # type: ignore[misc]
    """Adds the squares of the variables that it is given to the loss."""

    def compute_gradients(self, loss: Any, var_list: Any = None, **kwargs: Any) -> GradsAndVars:
        """The gradients of both."""
        variables = [each for each in var_list or tf.trainable_variables() if each.dtype.base_dtype == loss.dtype]
        decay = 0.1 * tf.add_n([tf.nn.l2_loss(each) for each in variables])
        found: GradsAndVars = super().compute_gradients(loss + decay, var_list, **kwargs)
        return found


class Scaled(tf.train.Optimizer):  # type: ignore[misc]
    """Scales the loss by a constant, and gradients back."""

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> GradsAndVars:
        """The true gradients, by way of larger ones."""
        found = super().compute_gradients(loss * 1024.0, *args, **kwargs)
        return [(None if grad is None else grad / 1024.0, variable) for grad, variable in found]


class Skipping(tf.train.Optimizer):  # type: ignore[misc]
    """Scales by a number that doubles with each step; a step whose gradients overflow changes and counts nothing."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        first = tf.constant_initializer(_FIRST_SCALE)
        self._scale = tf.get_variable("loss_scale", [], initializer=first, trainable=False, use_resource=True)

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> GradsAndVars:
        """The true gradients, by way of larger ones."""
        found = super().compute_gradients(loss * self._scale, *args, **kwargs)
        return [(None if grad is None else grad / tf.cast(self._scale, grad.dtype), v) for grad, v in found]

    def apply_gradients(self, grads_and_vars: GradsAndVars, global_step: Any = None, name: Any = None) -> Any:
        """Applies them if all are finite, then moves the scale."""
        pairs = [(grad, variable) for grad, variable in grads_and_vars if grad is not None]
        finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(grad)) for grad, _ in pairs])
        zeroed = [(tf.where(tf.fill(tf.shape(grad), finite), grad, tf.zeros_like(grad)), v) for grad, v in pairs]
        applied = super().apply_gradients(zeroed)
        scale = tf.where(finite, tf.minimum(self._scale, _LAST_SCALE / 2) * 2.0, self._scale / 4.0)
        with tf.control_dependencies([applied, scale]):
            moved = [self._scale.assign(scale)]
            if global_step is not None:
                moved.append(tf.assign_add(global_step, tf.cast(finite, tf.int64)))
        return tf.group(*moved, name=name)


class Clipping(tf.train.Optimizer):  # type: ignore[misc]
    """Clips each gradient by its norm."""

    def compute_gradients(self, *args: Any, **kwargs: Any) -> GradsAndVars:
        """Clips what the base class found."""
        found = super().compute_gradients(*args, **kwargs)
        return [(None if grad is None else tf.clip_by_norm(grad, 0.1), variable) for grad, variable in found]


class Nonlinear(tf.train.Optimizer):  # type: ignore[misc]
    """Keeps the loss above a level, as flooding does."""

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> GradsAndVars:
        """The gradients of a loss that is not linear in the mean loss."""
        found: GradsAndVars = super().compute_gradients(tf.abs(loss - 0.9) + 0.9, *args, **kwargs)
        return found


class Averaging(tf.train.Optimizer):  # type: ignore[misc]
    """Wraps another, and averages what that has updated, as contrib's MovingAverageOptimizer does."""

    def __init__(self, inner: Any):
        super().__init__(False, "Averaging")
        self._inner = inner
        self._average = tf.train.ExponentialMovingAverage(0.99, num_updates=tf.train.get_global_step())

    def compute_gradients(self, *args: Any, **kwargs: Any) -> GradsAndVars:
        """The inner one's."""
        found: GradsAndVars = self._inner.compute_gradients(*args, **kwargs)
        return found

    def apply_gradients(self, grads_and_vars: GradsAndVars, global_step: Any = None, name: Any = None) -> Any:
        """Applies by the inner one, then averages."""
        pairs = list(grads_and_vars)
        applied = self._inner.apply_gradients(pairs, global_step)
        with tf.control_dependencies([applied]):
            return self._average.apply([variable for grad, variable in pairs if grad is not None])


class Counting(tf.train.Optimizer):  # type: ignore[misc]
    """Counts the step itself."""

    def apply_gradients(self, grads_and_vars: GradsAndVars, global_step: Any = None, name: Any = None) -> Any:
        """Applies without the step, and adds to it."""
        applied = super().apply_gradients(grads_and_vars)
        with tf.control_dependencies([applied]):
            return global_step.assign_add(1)


class Passing(tf.train.Optimizer):  # type: ignore[misc]
    """Has a ``minimize`` that only passes its arguments on."""

    def minimize(self, loss: Any, global_step: Any = None, var_list: Any = None, **kwargs: Any) -> Any:
        """What the base class does."""
        return super().minimize(loss, global_step, var_list, **kwargs)


class Changing(tf.train.Optimizer):  # type: ignore[misc]
    """Waits for the changes that the model has put into a collection of its own."""

    def apply_gradients(self, grads_and_vars: GradsAndVars, global_step: Any = None, name: Any = None) -> Any:
        """Applies after them."""
        with tf.control_dependencies(tf.get_collection(OWN_UPDATES)):
            return super().apply_gradients(grads_and_vars, global_step, name)


_WRAPPERS = {
    "regularized": Regularized,
    "decaying": Decaying,
    "scaled": Scaled,
    "skipping": Skipping,
    "clipping": Clipping,
    "nonlinear": Nonlinear,
    "counting": Counting,
    "passing": Passing,
}
_BASES: Dict[str, Tuple[str, Tuple[Any, ...], Dict[str, Any]]] = {
    "sgd": ("GradientDescentOptimizer", (), {}),
    "momentum": ("MomentumOptimizer", (0.8,), {}),
    "adam": ("AdamOptimizer", (), {"epsilon": EPSILON}),
}
_RATES = {"sgd": 0.1, "momentum": 0.05, "adam": 0.02}
_OF_ANOTHER_RATE = {"keys": "a", "keys_slash": "a/", "keys_leaf": "a/w", "keys_misspelt": "aa"}


def rate_of_the_model() -> Any:
    """The learning rate that is a variable."""
    with tf.variable_scope("schedule", reuse=tf.AUTO_REUSE):
        first = tf.constant_initializer(0.1)
        return tf.get_variable("rate", [], initializer=first, trainable=False, use_resource=True)


def wrapped(how: Construction) -> Any:
    """The optimizer of a construction."""
    name, wrapper = how.base, how.wrapper
    rate = _RATES[name] / (8.0 if wrapper == "skipping" else 1.0)
    if wrapper in _OF_ANOTHER_RATE:
        return {_OF_ANOTHER_RATE[wrapper]: _made(name, rate / 4), "": _made(name, rate)}
    if wrapper == "averaging":
        return Averaging(_made(name, rate))
    if wrapper == "decayed":
        return _made(name, rate_of_the_model())
    if wrapper == "adamw":
        return tf_contrib().AdamWOptimizer(0.05, 0.02, epsilon=EPSILON)
    if wrapper == "sync_replicas":
        return tf.train.SyncReplicasOptimizer(_made(name, rate), 1)
    if wrapper == "drop_stale":
        return tf_contrib().DropStaleGradientOptimizer(_made(name, rate), 1)
    mixed = Changing if how.update == "own_collection" else _WRAPPERS.get(wrapper)
    return _made(name, rate, mixed)


def tf_contrib() -> Any:
    """``tf.contrib.opt``, which TensorFlow 1.15 alone has."""
    from tensorflow.contrib import opt

    return opt


def _made(name: str, rate: Any, mixed: Any = None) -> Any:
    class_name, args, kwargs = _BASES[name]
    base = getattr(tf.train, class_name)
    made = base if mixed is None else type(f"{mixed.__name__}{class_name}", (mixed, base), {})
    return made(rate, *args, **kwargs)
