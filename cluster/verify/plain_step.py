"""One step of plain TensorFlow from given values, with a whole batch or its parts, and the allowed difference.

The sums over a whole batch and over its parts differ in their last bits. An optimizer that divides by the size of a
gradient, as Adam does, turns the last bit of a tiny gradient into a whole step. A kink, for example of an absolute
value, has the same effect. To find by how much a step varies, the reference takes the step again, with gradients
that are computed near the same values.
"""

from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from cluster.verify.named_values import Values, wide
from cluster.verify.own_gradients import mean, plus, times, with_values
from cluster.verify.plain import Given, Plain, Taken

_OF_SIZE = 8  # last bits of a value that may differ
_OF_MOVE = 64  # last bits, relative to the largest move of any element of a variable
_OF_SWAY = 4.0
_BESIDE = 4  # last bits by which values are changed to see how far a step varies
_TRIES = 8  # at most, to see how far a step varies
_BFLOAT16 = 2.0**-7  # numpy has no such type


class Tolerance:
    """The allowed difference after one step, element by element.

    Args:
      eps: the machine epsilon of the least precise type in the model's computation.
      before, expected: the values of the variables before and after a step of the reference.
    """

    def __init__(self, eps: float, before: Values, expected: Values):
        self._eps, self._before, self._expected = eps, before, expected
        self._swayed: Dict[str, Any] = {}

    def widen(self, again: Values) -> None:
        """Allow also the difference between ``expected`` and ``again``, the values after the same step taken again."""
        for name, value in again.items():
            if _is_float(value):
                off = _off(value, self._expected[name])
                self._swayed[name] = np.maximum(self._swayed.get(name, 0.0), off)

    def unlike(self, name: str, found: Any) -> Any:
        """Return, for each element of ``found``, whether it differs too much from the reference's variable ``name``."""
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
    """Return the machine epsilon of ``dtype``, a numpy type or the name of a type."""
    if str(dtype) == "bfloat16":
        return _BFLOAT16
    return float(np.finfo(np.dtype(dtype)).eps)


def beside(values: Values, names: List[str], eps: float, seed: int) -> Values:
    """Return ``values``, in which the variables ``names`` are changed by a few ``eps``, up or down at random."""
    signs = np.random.RandomState(seed)
    return {
        name: _beside(value, eps, signs) if name in names and _is_float(value) else value
        for name, value in values.items()
    }


def grads_beside(grads: List[Any], eps: float, seed: int) -> List[Any]:
    """Return ``grads``, changed by a few ``eps`` of each gradient's largest element, up or down at random."""
    signs = np.random.RandomState(seed)
    return with_values(grads, lambda values: _noisy(values, eps, signs))


def _noisy(value: Any, eps: float, signs: Any) -> Any:
    most = _most(_size(np.asarray(value)))
    return (value + _BESIDE * eps * most * signs.choice([-1.0, 1.0], np.shape(value))).astype(value.dtype)


def _beside(value: Any, eps: float, signs: Any) -> Any:
    return np.asarray(value * (1 + _BESIDE * eps * signs.choice([-1.0, 1.0], np.shape(value)))).astype(value.dtype)


def _is_float(value: Any) -> bool:
    dtype = np.asarray(value).dtype
    return dtype.kind in "fc" or str(dtype) == "bfloat16"


def _off(one: Any, other: Any) -> Any:
    """Return the distance of elements; it is 0 where both are NaN, or the same infinity."""
    one, other = wide(one), wide(other)
    with np.errstate(all="ignore"):
        off = np.abs(one - other)
    is_same = (one == other) | (np.isnan(one) & np.isnan(other))
    return np.where(np.isnan(off) & is_same, 0.0, off)


def _size(value: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.nan_to_num(np.abs(wide(value)))


def _most(values: Any) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.max()) if finite.size else 0.0


def _largest(found: Any, expected: Any) -> float:
    """Return the largest difference of two values."""
    return _most(np.atleast_1d(_off(found, expected))) if _is_float(found) or found.dtype.kind in "iu" else 0.0


class Reference:
    """A step of plain TensorFlow, and the difference from this step that a run may have.

    For several parts, the gradients are those of the mean loss, and the updates are those of the first part. The towers
    of a run do the same for a model whose examples depend on each other.

    Args:
      plain: the author's functions.
      eps: the machine epsilon of the least precise type in the model's computation.
      before: the values of the variables, by name.
      parts: the arrays of each part of the batch; one part for the whole batch.

    Attributes:
      before, after: the values of the variables before and after the step, by name.
      loss: the mean loss.
    """

    def __init__(self, plain: Plain, eps: float, before: Values, parts: Sequence[Any]):
        self.plain, self._eps, self.before, self._parts = plain, eps, before, list(parts)
        self._given: Optional[Given] = self._give(before) if self.is_of_parts else None
        taken = self.take(self.grads if self.is_of_parts else None)
        self.after = taken.after
        self.loss = taken.loss if self._given is None else self._given.loss
        self._tolerance = Tolerance(eps, {**taken.after, **before}, taken.after)
        self._tries = 0
        self._never_alike: Optional[List[str]] = None

    @property
    def is_of_parts(self) -> bool:
        """Return whether the batch is in several parts."""
        return len(self._parts) > 1

    @property
    def is_finite(self) -> bool:
        """Return whether the step has only finite numbers."""
        values = [self.loss, *self.after.values()]
        return all(bool(np.isfinite(wide(value)).all()) for value in values if _is_float(value))

    def take(self, grads: Optional[Sequence[Any]] = None) -> Taken:
        """Take the step again; ``grads`` replace the gradients that TensorFlow computes from the first part."""
        return self.plain.take(self.before, self._parts[0], grads)

    def unlike(self, found: Values) -> List[str]:
        """Return the names of variables whose value in ``found`` differs from this step's by more than rounding."""
        names = self._unlike(found)
        while names and self._tries < _TRIES and not self.never_alike:
            self._tolerance.widen(self._beside().after)
            names = self._unlike(found)
        return names

    @property
    def never_alike(self) -> List[str]:
        """Return the names of variables whose value differs when the same step is taken again."""
        if self._never_alike is None:
            again = self.take(self._give(self.before).grads if self.is_of_parts else None)
            self._never_alike = self._unlike(again.after)
        return self._never_alike

    def difference(self, name: str, found: Values) -> str:
        """Describe how the variable ``name`` in ``found``, the servers' values, differs from this step's value."""
        unlike, there = self._tolerance.unlike(name, found[name]), self.after[name]
        return (
            f"servers' {name} differs from plain TensorFlow in {unlike.sum():,} of {unlike.size:,} elements, by at most"
            f" {_largest(found[name], there):.2g}, and the step moved it by {_largest(there, self.before[name]):.2g}"
        )

    def with_term(self, name: str, number: float) -> Taken:
        """Take the step with the terms of the collection ``name`` counted ``number`` more times."""
        return self.take(plus(self.grads, self.terms[name], number))

    def scaled(self, factor: float) -> Taken:
        """Take the step with gradients multiplied by ``factor``."""
        return self.take(times(self.grads, factor))

    @property
    def grads(self) -> List[Any]:
        """Return the gradients of the mean loss, as TensorFlow computes them."""
        if self._given is None:
            self._given = self._give(self.before)
        return self._given.grads

    @property
    def terms(self) -> Dict[str, Dict[int, Any]]:
        """Return the gradients of the sum of each collection's terms, by the index of the variable."""
        return self.plain.terms_of(self.before, self._parts[0])

    def explains(self, found: Values, after: Values, names: Sequence[str]) -> bool:
        """Return whether the variables ``names`` in ``found`` differ from ``after`` by no more than rounding."""
        tolerance = Tolerance(self._eps, {**after, **self.before}, after)
        return not any(tolerance.unlike(name, found[name]).any() for name in names)

    def _unlike(self, found: Values) -> List[str]:
        return [name for name in found if name in self.after and self._tolerance.unlike(name, found[name]).any()]

    def _beside(self) -> Taken:
        self._tries += 1
        names = [name for name in self.before if name in self.plain.model_names]
        values = beside(self.before, names, self._eps, self._tries)
        return self.take(grads_beside(self._give(values).grads, self._eps, self._tries))

    def _give(self, values: Values) -> Given:
        """Compute the mean loss, and its gradients, of all parts."""
        given = [self.plain.give(values, part) for part in self._parts]
        examples = [each.examples for each in given]
        loss = sum(each.loss * each.examples for each in given) / sum(examples)
        return Given(loss, sum(examples), mean([each.grads for each in given], examples))
