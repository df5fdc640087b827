"""Optimizers by rules that TensorFlow 1.15 lacks."""

from types import MappingProxyType
from typing import Any, Tuple

from cluster.runtime.tf_compat import tf
from cluster.updates.by_rule import ByRule, Slots, refuse


class AdamW(ByRule):
    """Adam with decoupled weight decay: I. Loshchilov and F. Hutter, ICLR 2019.

    Args:
      learning_rate: the rate, a number or a tensor; the decay is multiplied by it, too.
      weight_decay: the share of a value that is taken off in each update, before the rate.
    """

    slots = MappingProxyType({"mean": 0.0, "square": 0.0})

    def __init__(
        self, learning_rate: Any = 0.001, weight_decay: float = 0.01, beta1: float = 0.9, beta2: float = 0.999,
        epsilon: float = 1e-8,
    ):  # fmt: skip
        super().__init__()
        self._rate, self._decay = learning_rate, weight_decay
        self._betas, self._epsilon = (beta1, beta2), epsilon

    def update(self, number: Any, grad: Any, value: Any, slots: Slots) -> Tuple[Any, Slots]:
        """Return the new value and moments."""
        first, second = self._betas
        mean = first * slots["mean"] + (1 - first) * grad
        square = second * slots["square"] + (1 - second) * grad * grad
        unbiased = tf.sqrt(1 - second**number) / (1 - first**number)
        step = unbiased * mean / (tf.sqrt(square) + self._epsilon) + self._decay * value
        return value - _rate(self._rate, value.dtype) * step, {"mean": mean, "square": square}


class AdamAsync(AdamW):
    """Adam in which each element counts its own updates: for rows that appear late, and ids of all frequencies.

    Adam corrects the bias of an element's moments by the number of all updates. So the first updates of a row that
    appears late are up to three times as large as those of a row that was there from the start.
    """

    slots = MappingProxyType({"mean": 0.0, "square": 0.0, "updates": 0.0})

    def __init__(self, learning_rate: Any = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8):
        super().__init__(learning_rate, 0.0, beta1, beta2, epsilon)

    def update(self, number: Any, grad: Any, value: Any, slots: Slots) -> Tuple[Any, Slots]:
        """Return the new value, moments and number of updates."""
        own = slots["updates"] + 1
        value, moments = super().update(own, grad, value, slots)
        return value, {**moments, "updates": own}


class AdagradDecay(ByRule):
    """Adagrad whose sums of squares decay, so that old gradients count less: for logs that never end.

    Args:
      learning_rate: the rate, a number or a tensor.
      decay: the factor by which a sum becomes smaller every ``every`` updates; never below ``initial``.
      every: the number of updates.
      initial: the first value of a sum.

    Raises:
      JobError: ``every`` is below 1.
    """

    def __init__(self, learning_rate: Any, decay: float = 0.9, every: float = 100_000, initial: float = 0.1):
        super().__init__()
        refuse(self, "decays every 1 update or more", every, every >= 1, "every")
        self._rate, self._decay, self._every, self._initial = learning_rate, decay, every, initial
        self.slots = {"sum": initial, "decays": 0.0}

    def update(self, number: Any, grad: Any, value: Any, slots: Slots) -> Tuple[Any, Slots]:
        """Return the new value and sum, with the decays that are due since the element's last update."""
        due = tf.floor(number / self._every) + tf.zeros_like(value)
        before = tf.maximum(slots["sum"] * self._decay ** (due - slots["decays"]), self._initial)
        total = before + grad * grad
        return value - _rate(self._rate, value.dtype) * grad * tf.math.rsqrt(total), {"sum": total, "decays": due}


class GroupFtrl(ByRule):
    """FTRL-Proximal with a group lasso: a row that predicts nothing becomes zeros, whole. For embedding tables alone.

    Y. Yue et al., "Adaptive Optimizers with Sparse Group Lasso for Neural Networks in CTR Prediction", ECML PKDD 2021.

    Args:
      learning_rate: the rate, a number or a tensor.
      group: the strength of the group lasso: a row of width w is zeros while the norm of its gradients' sum, after
        ``l1``, is at most ``group`` times the square root of w.
      l1, l2: the strengths of the lasso of each element, and of its square.
      initial: the first sum of squares, above 0.
    """

    by_row = True

    def __init__(self, learning_rate: Any, group: float, l1: float = 0.0, l2: float = 0.0, initial: float = 0.1):
        super().__init__()
        refuse(self, "a first sum of squares above 0", initial, initial > 0, "initial")
        self._rate, self._group, self._l1, self._l2 = learning_rate, group, l1, l2
        self.slots = {"sum": initial, "linear": 0.0}

    def update(self, number: Any, grad: Any, value: Any, slots: Slots) -> Tuple[Any, Slots]:
        """Return the new rows, sums of squares, and sums of gradients less what the rows have moved."""
        rate, total = _rate(self._rate, value.dtype), slots["sum"] + grad * grad
        linear = slots["linear"] + grad - (tf.sqrt(total) - tf.sqrt(slots["sum"])) / rate * value
        above = tf.sign(linear) * tf.maximum(tf.abs(linear) - self._l1, 0)
        norm = tf.norm(above, axis=-1, keepdims=True)
        least = self._group * tf.sqrt(tf.cast(tf.shape(value)[-1], value.dtype))
        kept = tf.where(norm > least, 1 - least / norm, tf.zeros_like(norm))
        return -kept * above / (tf.sqrt(total) / rate + 2 * self._l2), {"sum": total, "linear": linear}


def _rate(given: Any, dtype: Any) -> Any:
    return tf.cast(given() if callable(given) else given, dtype)
