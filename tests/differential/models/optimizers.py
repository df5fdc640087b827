"""Optimizers: TensorFlow's own, and those that authors derive from them."""

import re
from typing import Any, List, Tuple

import tensorflow.compat.v1 as tf

from tests.differential.authors import author
from tests.differential.losses import EPSILON, Args, error_of, square, through

GradsAndVars = List[Tuple[Any, Any]]


def _two_layers(x: Any, y: Any, args: Args) -> Any:
    with tf.variable_scope("body"):
        hidden = through(x, square(args))
    with tf.variable_scope("head"):
        return error_of(hidden, y)


@author(lambda args: tf.train.MomentumOptimizer(0.05, 0.9))
def momentum_optimizer(x: Any, y: Any, args: Args) -> Any:
    """MomentumOptimizer."""
    return _two_layers(x, y, args)


@author(lambda args: tf.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True))
def nesterov(x: Any, y: Any, args: Args) -> Any:
    """MomentumOptimizer(use_nesterov=True)."""
    return _two_layers(x, y, args)


@author(lambda args: tf.train.AdamOptimizer(0.02, epsilon=EPSILON))
def adam_optimizer(x: Any, y: Any, args: Args) -> Any:
    """AdamOptimizer."""
    return _two_layers(x, y, args)


@author(lambda args: tf.train.AdagradOptimizer(0.1))
def adagrad(x: Any, y: Any, args: Args) -> Any:
    """AdagradOptimizer."""
    return _two_layers(x, y, args)


@author(lambda args: tf.train.RMSPropOptimizer(0.01, momentum=0.5, epsilon=EPSILON, centered=True))
def rmsprop(x: Any, y: Any, args: Args) -> Any:
    """RMSPropOptimizer, centered and with momentum."""
    return _two_layers(x, y, args)


@author(lambda args: tf.train.FtrlOptimizer(0.2, l1_regularization_strength=0.001, l2_regularization_strength=0.01))
def ftrl(x: Any, y: Any, args: Args) -> Any:
    """FtrlOptimizer with both penalties."""
    return _two_layers(x, y, args)


@author(lambda args: tf.train.AdadeltaOptimizer(1.0, epsilon=EPSILON))
def adadelta(x: Any, y: Any, args: Args) -> Any:
    """AdadeltaOptimizer."""
    return _two_layers(x, y, args)


@author(lambda args: tf.train.ProximalGradientDescentOptimizer(0.1, l1_regularization_strength=0.02))
def proximal(x: Any, y: Any, args: Args) -> Any:
    """ProximalGradientDescentOptimizer."""
    return _two_layers(x, y, args)


class Lars(tf.train.MomentumOptimizer):  # type: ignore[misc]
    """Layer-wise rates: each variable's own norm over that of its gradient."""

    def apply_gradients(self, grads_and_vars: GradsAndVars, global_step: Any = None, name: Any = None) -> Any:
        """Scales each gradient by trust and adds the decay."""
        scaled = [(self._scaled(grad, variable), variable) for grad, variable in grads_and_vars if grad is not None]
        return super().apply_gradients(scaled, global_step, name)

    def _scaled(self, grad: Any, variable: Any) -> Any:
        value = tf.convert_to_tensor(variable)
        decayed = grad + 0.01 * value
        return decayed * tf.norm(value) / (tf.norm(decayed) + EPSILON)


@author(lambda args: Lars(0.1, 0.9))
def lars(x: Any, y: Any, args: Args) -> Any:
    """LARS by apply_gradients of a subclass."""
    return _two_layers(x, y, args)


class ClippedEach(tf.train.GradientDescentOptimizer):  # type: ignore[misc]
    """Clips each variable's gradient by its own norm."""

    def compute_gradients(self, *args: Any, **kwargs: Any) -> GradsAndVars:
        """Clips what the base class found."""
        found = super().compute_gradients(*args, **kwargs)
        return [(None if grad is None else tf.clip_by_norm(grad, 0.1), variable) for grad, variable in found]


@author(lambda args: ClippedEach(0.5))
def clipped_each(x: Any, y: Any, args: Args) -> Any:
    """clip_by_norm of each gradient in compute_gradients."""
    return _two_layers(x, y, args)


class ClippedTogether(tf.train.AdamOptimizer):  # type: ignore[misc]
    """Clips all gradients by their global norm."""

    def compute_gradients(self, *args: Any, **kwargs: Any) -> GradsAndVars:
        """Clips what the base class found."""
        found = [pair for pair in super().compute_gradients(*args, **kwargs) if pair[0] is not None]
        grads, variables = zip(*found)
        clipped, _ = tf.clip_by_global_norm(grads, 0.2)
        return list(zip(clipped, variables))


@author(lambda args: ClippedTogether(0.02, epsilon=EPSILON))
def clipped_together(x: Any, y: Any, args: Args) -> Any:
    """clip_by_global_norm in compute_gradients."""
    return _two_layers(x, y, args)


class Frozen(tf.train.GradientDescentOptimizer):  # type: ignore[misc]
    """Trains nothing whose name begins with ``frozen``."""

    def __init__(self, rate: float, frozen: str):
        super().__init__(rate)
        self._frozen = frozen

    def compute_gradients(self, loss: Any, var_list: Any = None, **kwargs: Any) -> GradsAndVars:
        """Leaves those out of the list."""
        listed = var_list or tf.trainable_variables()
        chosen = [variable for variable in listed if not variable.name.startswith(self._frozen)]
        found: GradsAndVars = super().compute_gradients(loss, chosen, **kwargs)
        return found


@author(lambda args: Frozen(0.1, "body"))
def frozen_by_list(x: Any, y: Any, args: Args) -> Any:
    """compute_gradients that hands a shorter list to the base class."""
    return _two_layers(x, y, args)


class FrozenAfter(tf.train.MomentumOptimizer):  # type: ignore[misc]
    """Trains nothing whose name begins with ``body``."""

    def compute_gradients(self, *args: Any, **kwargs: Any) -> GradsAndVars:
        """Leaves them out of what was found."""
        found = super().compute_gradients(*args, **kwargs)
        return [(grad, variable) for grad, variable in found if not re.match("body", variable.op.name)]


@author(lambda args: FrozenAfter(0.1, 0.9))
def frozen_by_name(x: Any, y: Any, args: Args) -> Any:
    """compute_gradients that leaves variables out by name."""
    return _two_layers(x, y, args)


class Slowed(tf.train.GradientDescentOptimizer):  # type: ignore[misc]
    """A tenth of the rate for what is named so."""

    def apply_gradients(self, grads_and_vars: GradsAndVars, global_step: Any = None, name: Any = None) -> Any:
        """Multiplies gradients by name."""
        slowed = [(grad * (0.1 if "body/" in variable.name else 1.0), variable) for grad, variable in grads_and_vars]
        return super().apply_gradients(slowed, global_step, name)


@author(lambda args: Slowed(0.2))
def rate_by_name(x: Any, y: Any, args: Args) -> Any:
    """A rate of its own for each group of names, in apply_gradients."""
    return _two_layers(x, y, args)


class BertAdamW(tf.train.Optimizer):  # type: ignore[misc]
    """Adam with decoupled decay as BERT's repository writes it, with all in apply_gradients."""

    def __init__(self, rate: float, decay: float, excluded: Tuple[str, ...]):
        super().__init__(False, "BertAdamW")
        self.rate, self.decay, self.excluded = rate, decay, excluded

    def apply_gradients(self, grads_and_vars: GradsAndVars, global_step: Any = None, name: Any = None) -> Any:
        """Assigns every variable and its two moments."""
        pairs = [(grad, variable) for grad, variable in grads_and_vars if grad is not None]
        assignments = [each for grad, variable in pairs for each in self._assignments(grad, variable)]
        if global_step is not None:
            assignments.append(global_step.assign_add(1))
        return tf.group(*assignments, name=name)

    def _assignments(self, grad: Any, variable: Any) -> List[Any]:
        name = re.match("^(.*):\\d+$", variable.name).group(1)  # type: ignore[union-attr]
        m, v = (self._moment(f"{name}/{kind}", variable) for kind in ("adam_m", "adam_v"))
        next_m = 0.9 * m + 0.1 * grad
        next_v = 0.999 * v + 0.001 * tf.square(grad)
        update = next_m / (tf.sqrt(next_v) + EPSILON)
        if not any(re.search(pattern, name) for pattern in self.excluded):
            update += self.decay * variable
        return [variable.assign(variable - self.rate * update), m.assign(next_m), v.assign(next_v)]

    def _moment(self, name: str, variable: Any) -> Any:
        shape = variable.shape.as_list()
        return tf.get_variable(name, shape, tf.float32, trainable=False, initializer=tf.zeros_initializer())


@author(lambda args: BertAdamW(0.05, 0.5, ("/b$",)))
def bert_adamw(x: Any, y: Any, args: Args) -> Any:
    """AdamW in BERT's form: own variables, assignments, exclusions by name."""
    return _two_layers(x, y, args)


class AdamW(tf.train.AdamOptimizer):  # type: ignore[misc]
    """Adam whose subclass decays each variable before its update."""

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        with tf.control_dependencies([var.assign_sub(0.02 * var)]):
            return super()._apply_dense(grad, var)

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        with tf.control_dependencies([var.assign_sub(0.02 * var)]):
            return super()._resource_apply_dense(grad, var)


@author(lambda args: AdamW(0.02, epsilon=EPSILON))
def adamw_by_subclass(x: Any, y: Any, args: Args) -> Any:
    """A subclass of Adam that overrides how one variable is updated."""
    return _two_layers(x, y, args)


class Centralised(tf.train.MomentumOptimizer):  # type: ignore[misc]
    """Gradients without their mean over the columns."""

    def apply_gradients(self, grads_and_vars: GradsAndVars, global_step: Any = None, name: Any = None) -> Any:
        """Takes the mean off those of matrices."""
        centred = [
            (grad - tf.reduce_mean(grad, 0, keepdims=True) if variable.shape.ndims == 2 else grad, variable)
            for grad, variable in grads_and_vars
        ]
        return super().apply_gradients(centred, global_step, name)


@author(lambda args: Centralised(0.1, 0.9))
def centralised_gradients(x: Any, y: Any, args: Args) -> Any:
    """Gradient centralisation: a mean over rows, in apply_gradients."""
    return _two_layers(x, y, args)


class SignDescent(tf.train.Optimizer):  # type: ignore[misc]
    """An optimizer from nothing but the methods that Optimizer leaves open."""

    def __init__(self, rate: float):
        super().__init__(False, "SignDescent")
        self._rate = rate

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return tf.assign_sub(var, self._rate * tf.tanh(100.0 * grad))

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        return var.assign_sub(self._rate * tf.tanh(100.0 * grad))


@author(lambda args: SignDescent(0.01))
def own_optimizer(x: Any, y: Any, args: Args) -> Any:
    """An optimizer of the author's own, with _apply_dense."""
    return _two_layers(x, y, args)


class Lamb(tf.train.AdamOptimizer):  # type: ignore[misc]
    """Gradients as long as their variables, then Adam."""

    def apply_gradients(self, grads_and_vars: GradsAndVars, global_step: Any = None, name: Any = None) -> Any:
        """Scales gradients so that they are as long as their variables."""
        lengthened = [(grad * tf.norm(v) / (tf.norm(grad) + 0.1), v) for grad, v in grads_and_vars if grad is not None]
        return super().apply_gradients(lengthened, global_step, name)


@author(lambda args: Lamb(0.02, epsilon=EPSILON))
def lamb(x: Any, y: Any, args: Args) -> Any:
    """A norm of each variable with Adam."""
    return _two_layers(x, y, args)


@author(lambda args: tf.train.GradientDescentOptimizer(0.1))
def not_trainable(x: Any, y: Any, args: Args) -> Any:
    """trainable=False on one of two matrices."""
    hidden = through(x, square(args, "fixed", trainable=False))
    return error_of(through(hidden, square(args)), y)


class Wrapped(tf.train.Optimizer):  # type: ignore[misc]
    """Passes all on to another optimizer, as wrappers of the community do."""

    def __init__(self, inner: Any):
        super().__init__(False, "Wrapped")
        self._inner = inner

    def compute_gradients(self, *args: Any, **kwargs: Any) -> GradsAndVars:
        """Half of those of the other."""
        found = self._inner.compute_gradients(*args, **kwargs)
        return [(None if grad is None else 0.5 * grad, variable) for grad, variable in found]

    def apply_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """Applies them with the other."""
        return self._inner.apply_gradients(*args, **kwargs)


@author(lambda args: Wrapped(tf.train.MomentumOptimizer(0.1, 0.9)))
def wrapper(x: Any, y: Any, args: Args) -> Any:
    """An optimizer that wraps another."""
    return _two_layers(x, y, args)


class WithRegularization(tf.train.MomentumOptimizer):  # type: ignore[misc]
    """Adds to the loss what ``tf.get_variable(regularizer=)`` has laid down."""

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> GradsAndVars:
        """The gradients of both together, of which each variable's are clipped."""
        found = super().compute_gradients(loss + tf.losses.get_regularization_loss(), *args, **kwargs)
        return [(None if grad is None else tf.clip_by_norm(grad, 0.5), variable) for grad, variable in found]


@author(lambda args: WithRegularization(0.05, 0.9))
def decay_in_optimizer(x: Any, y: Any, args: Args) -> Any:
    """A weight decay that the optimizer adds to the loss, from REGULARIZATION_LOSSES."""
    return error_of(through(x, square(args, regularizer=lambda w: 0.3 * tf.nn.l2_loss(w))), y)


class ScaledDecay(tf.train.GradientDescentOptimizer):  # type: ignore[misc]
    """Adds a decay of all variables to the loss, and scales both."""

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> GradsAndVars:
        """The true gradients, by way of larger ones."""
        decay = tf.add_n([tf.nn.l2_loss(variable) for variable in tf.trainable_variables()])
        found = super().compute_gradients(64.0 * (loss + 0.3 * decay), *args, **kwargs)
        return [(None if grad is None else grad / 64.0, variable) for grad, variable in found]


@author(lambda args: ScaledDecay(0.1))
def scaled_decay_in_optimizer(x: Any, y: Any, args: Args) -> Any:
    """A decay of all variables that the optimizer adds to the loss, scaled."""
    return _two_layers(x, y, args)


class Averaged(tf.train.Optimizer):  # type: ignore[misc]
    """Keeps averages of what another optimizer trains, slow ones only after some steps."""

    def __init__(self, inner: Any):
        super().__init__(False, "Averaged")
        self._inner = inner
        self._average = tf.train.ExponentialMovingAverage(0.99, num_updates=tf.train.get_or_create_global_step())

    def compute_gradients(self, *args: Any, **kwargs: Any) -> GradsAndVars:
        """Those of the other."""
        found: GradsAndVars = self._inner.compute_gradients(*args, **kwargs)
        return found

    def apply_gradients(self, grads_and_vars: GradsAndVars, global_step: Any = None, name: Any = None) -> Any:
        """Averages when the step is counted."""
        with tf.control_dependencies([self._inner.apply_gradients(grads_and_vars, global_step, name)]):
            return self._average.apply([variable for grad, variable in grads_and_vars if grad is not None])


@author(lambda args: Averaged(tf.train.MomentumOptimizer(0.1, 0.9)))
def averaged_by_step(x: Any, y: Any, args: Args) -> Any:
    """Averages of variables whose decay is that of the step that was just counted."""
    return _two_layers(x, y, args)
