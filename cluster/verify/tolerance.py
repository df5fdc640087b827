"""The difference that two steps from the same values may have: rounding, and the effect of a rounding on a model.

A whole batch and its parts do not have the same sums to the last bit. An optimizer that divides by the size of a
gradient, as Adam does, makes a whole step of the last bit of a gradient that is almost zero; so does a kink, as of an
absolute value. How far a step sways by itself is found by taking it again, with gradients computed beside the same
values.
"""

from typing import Any, Dict, List, Mapping

import numpy as np

from cluster.verify.named_values import Values
from cluster.verify.own_gradients import Rows

_OF_SIZE = 8  # last bits of a value that may differ
_OF_MOVE = 64  # last bits, of how far any element of a variable has moved
_OF_SWAY = 4.0
_BESIDE = 4  # last bits by which values are off to see how far a step sways
_BFLOAT16 = 2.0**-7  # numpy has no such type


class Tolerance:
    """The difference that is allowed after one step, element by element.

    Args:
      eps: of the coarsest numbers with which the model computes.
      before, expected: the variables before and after a step of the reference.
    """

    def __init__(self, eps: float, before: Values, expected: Values):
        self._eps, self._before, self._expected = eps, before, expected
        self._swayed: Dict[str, Any] = {}

    def widen(self, again: Values) -> None:
        """Allow for how far the same step was off another time."""
        for name, value in again.items():
            if _is_float(value):
                off = _off(value, self._expected[name])
                self._swayed[name] = np.maximum(self._swayed.get(name, 0.0), off)

    def unlike(self, name: str, found: Any) -> Any:
        """Return which elements of a variable are too far from those of the reference, bool of its shape."""
        expected = np.asarray(self._expected[name])
        if found.shape != expected.shape or found.dtype != expected.dtype:
            return np.ones(found.shape, bool)
        if not _is_float(found):
            return np.asarray(found != expected)
        return ~(_off(found, expected) <= self._allowed(name))

    def _allowed(self, name: str) -> Any:
        before, expected = np.asarray(self._before[name]), np.asarray(self._expected[name])
        size = np.maximum(_size(before), _size(expected))
        moved = _most(_off(expected, before))
        swayed = self._swayed.get(name, 0.0)
        sway = swayed + np.median(swayed) if np.size(swayed) else swayed
        return _OF_SIZE * eps_of(expected.dtype) * size + _OF_MOVE * self._eps * moved + _OF_SWAY * sway


def eps_of(dtype: Any) -> float:
    """Return the part by which two numbers of a type, or of its name, are apart."""
    if str(dtype) == "bfloat16":
        return _BFLOAT16
    return float(np.finfo(np.dtype(dtype)).eps)


def beside(values: Values, names: List[str], eps: float, seed: int) -> Values:
    """Return values of which some variables are off by some last bits, up and down."""
    signs = np.random.RandomState(seed)
    return {
        name: _beside(value, eps, signs) if name in names and _is_float(value) else value
        for name, value in values.items()
    }


def grads_beside(grads: List[Any], eps: float, seed: int) -> List[Any]:
    """Return gradients that are off by some last bits of their largest element, up and down."""
    signs = np.random.RandomState(seed)
    return [
        Rows(_noisy(grad.values, eps, signs), grad.indices) if isinstance(grad, Rows) else _noisy(grad, eps, signs)
        for grad in grads
    ]


def _noisy(value: Any, eps: float, signs: Any) -> Any:
    most = _most(_size(np.asarray(value)))
    return (value + _BESIDE * eps * most * signs.choice([-1.0, 1.0], np.shape(value))).astype(value.dtype)


def _beside(value: Any, eps: float, signs: Any) -> Any:
    return np.asarray(value * (1 + _BESIDE * eps * signs.choice([-1.0, 1.0], np.shape(value)))).astype(value.dtype)


def _is_float(value: Any) -> bool:
    dtype = np.asarray(value).dtype
    return dtype.kind in "fc" or str(dtype) == "bfloat16"


def _off(one: Any, other: Any) -> Any:
    """Return how far elements are apart; a NaN, or an infinity, is where it is in both."""
    with np.errstate(all="ignore"):
        off = np.abs(_wide(one) - _wide(other))
        return np.where(np.isnan(off) & _alike(one, other), 0.0, off)


def _alike(one: Any, other: Any) -> Any:
    one, other = _wide(one), _wide(other)
    return (one == other) | (np.isnan(one) & np.isnan(other))


def _size(value: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.nan_to_num(np.abs(_wide(value)))


def _most(values: Any) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.max()) if finite.size else 0.0


def _wide(value: Any) -> Any:
    value = np.asarray(value)
    return value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)


def largest(found: Any, expected: Any) -> float:
    """Return the most by which two values are apart."""
    return _most(np.atleast_1d(_off(found, expected))) if _is_float(found) or found.dtype.kind in "iu" else 0.0


def all_finite(values: Mapping[str, Any]) -> bool:
    """Return whether no value is a NaN or an infinity."""
    return all(bool(np.isfinite(_wide(value)).all()) for value in values.values() if _is_float(value))
