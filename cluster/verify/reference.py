"""One step of plain TensorFlow with a whole batch, or with its parts, from values that are given."""

from typing import Any, Dict, List, Optional, Sequence

from cluster.verify.named_values import Values
from cluster.verify.own_gradients import mean, plus, times
from cluster.verify.plain import Plain, Taken
from cluster.verify.tolerance import Tolerance, all_finite, beside, grads_beside

_TRIES = 8  # at most, to see how far a step sways


class Reference:
    """A step of plain TensorFlow, and how far it may be off.

    Of several parts the gradients are those of the mean loss, and updates are those of the first part: so the towers
    of a run compute a model whose examples depend on each other.

    Args:
      plain: the author's functions.
      eps: of the coarsest numbers with which the model computes.
      before: the variables, by name.
      parts: the arrays of each part of the batch; one for the whole.

    Attributes:
      loss, after: the mean loss, and the variables after the step.
    """

    def __init__(self, plain: Plain, eps: float, before: Values, parts: Sequence[Any]):
        self.plain, self._eps, self._before, self._parts = plain, eps, before, list(parts)
        self._found: Optional[List[Any]] = None
        grads = self.grads if self.is_of_parts else None
        taken = self.take(grads)
        self.after = taken.after
        if grads is None:
            self.loss = taken.loss
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
        return all_finite({**self.after, "loss": self.loss})

    def take(self, grads: Optional[Sequence[Any]] = None) -> Taken:
        """Take the step again, with gradients in place of those that TensorFlow computes."""
        return self.plain.take(self._before, self._parts[0], grads)

    def unlike(self, found: Values) -> List[str]:
        """Return the names of variables that are farther from this step's than rounding explains."""
        names = self._unlike(found)
        while names and self._tries < _TRIES and not self.never_alike:
            self._tolerance.widen(self._beside().after)
            names = self._unlike(found)
        return names

    @property
    def never_alike(self) -> List[str]:
        """Return the names of variables to which the same step, taken again, gives another value."""
        if self._never_alike is None:
            again = self.take(self._grads(self._before) if self.is_of_parts else None)
            self._never_alike = self._unlike(again.after)
        return self._never_alike

    def elements(self, name: str, found: Values) -> Any:
        """Return which elements of a variable are too far off, bool of its shape."""
        return self._tolerance.unlike(name, found[name])

    def with_term(self, name: str, number: float) -> Taken:
        """Take the step with the terms of a collection counted so many times more."""
        return self.take(plus(self.grads, self.terms[name], number))

    def scaled(self, factor: float) -> Taken:
        """Take the step with multiplied gradients."""
        return self.take(times(self.grads, factor))

    @property
    def grads(self) -> List[Any]:
        """Return the gradients of the mean loss, as TensorFlow computes them."""
        if self._found is None:
            self._found = self._grads(self._before)
        return self._found

    @property
    def terms(self) -> Dict[str, List[Any]]:
        """Return the gradients of the sum of each collection's terms."""
        return self.plain.terms_of(self._before, self._parts[0])

    def explains(self, found: Values, after: Values, names: Sequence[str]) -> bool:
        """Return whether, of these variables, values are as near to ``after`` as rounding explains."""
        tolerance = Tolerance(self._eps, {**after, **self._before}, after)
        return not any(tolerance.unlike(name, found[name]).any() for name in names)

    def _unlike(self, found: Values) -> List[str]:
        return [name for name in found if name in self.after and self.elements(name, found).any()]

    def _beside(self) -> Taken:
        self._tries += 1
        values = beside(self._before, self._model_names, self._eps, self._tries)
        return self.take(grads_beside(self._grads(values), self._eps, self._tries))

    @property
    def _model_names(self) -> List[str]:
        return [name for name in self._before if name in self.plain.model_names]

    def _grads(self, values: Values) -> List[Any]:
        given = [self.plain.give(values, part) for part in self._parts]
        examples = [each.examples for each in given]
        if values is self._before:
            self.loss = sum(each.loss * each.examples for each in given) / sum(examples)
        return mean([each.grads for each in given], examples)
