"""Values of a model's metrics over any number of examples: of all examples, and of the largest slices of the data.

Examples are added batch by batch, and none is kept: sums are, and for areas under a curve the table of
``ranked_scores``. A value is NaN where the metric is undefined.
"""

import math
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Sequence, Tuple

import numpy as np

from cluster.errors import JobError
from cluster.scoring.examples import SliceNumbers
from cluster.scoring.ranked_scores import Area, RankedScores

CLIP = 1e-7  # distance from 0 and 1, the precision of a float32 probability
Parts = Mapping[str, np.ndarray]  # of a metric: [n] by the name of the part


class BadExamples(ValueError):
    """Examples for which a metric has no meaning, because the model passes wrong values."""


class Reading(NamedTuple):
    """A metric whose parts are columns of examples; ``columns`` maps each part to the index of its column."""

    kind: str
    columns: Mapping[str, int]
    most: int  # slices with results of their own


class _Sums:
    """A metric of sums over examples, which are kept for each slice: of weights, and of weighted values.

    Args:
      values: a function from parts to values, [n] each.
      ratio: the two sums whose ratio is the metric, by their index; 0 is that of weights.
    """

    level = 0

    def __init__(self, values: Callable[[Parts], List[Any]], ratio: Tuple[int, int] = (1, 0)):
        self._values, self._ratio = values, ratio
        self._sums = np.zeros((3, 0))

    def add(self, slices: np.ndarray, parts: Parts) -> None:
        """Add examples, of which each has the number of its slice in ``slices``."""
        weight = np.asarray(parts.get("weight", np.ones(len(slices))), np.float64)
        more = slices.max(initial=0) + 1 - self._sums.shape[1]
        if more > 0:
            self._sums = np.pad(self._sums, ((0, 0), (0, more)), "constant")
        for index, value in enumerate([np.ones(len(slices)), *self._values(parts)]):
            self._sums[index] += np.bincount(slices, value * weight, self._sums.shape[1])

    def area(self, which: np.ndarray) -> Area:
        """Return the metric of some slices, without an error: sums have no range of values."""
        over, under = (self._sums[index, which[: self._sums.shape[1]]].sum() for index in self._ratio)
        return Area(float(over / under) if under else float("nan"))


def _entropies(parts: Parts) -> List[Any]:
    label, score = parts["label"], parts["score"]
    for name, values in (("labels", label), ("scores", score)):
        outside = values[(values < 0) | (values > 1)]
        if len(outside):
            raise BadExamples(f"expected {name} from 0 to 1, found {outside[0]:.6g}; pass probabilities, not logits")
    likely = np.clip(score.astype(np.float64), CLIP, 1 - CLIP)
    return [-(label * np.log(likely) + (1 - label) * np.log1p(-likely))]


_BY_KIND: Dict[str, Callable[[], Any]] = {
    "auc": lambda: RankedScores(is_grouped=False),
    "grouped_auc": lambda: RankedScores(is_grouped=True),
    "logloss": lambda: _Sums(_entropies),
    "calibration": lambda: _Sums(lambda parts: [parts["score"], parts["label"]], (1, 2)),
    "mean": lambda: _Sums(lambda parts: [parts["value"]]),
}


class MeasuredMetric:
    """One metric of the examples that were added.

    Args:
      kind: the name of the metric's function in ``cluster.metrics``.
      most: the largest number of slices with results of their own; 0 for a metric without slices.
    """

    def __init__(self, kind: str, most: int = 0):
        self._most, self._slices, self._of = most, SliceNumbers(), _BY_KIND[kind]()

    def add(self, parts: Parts) -> None:
        """Add examples.

        Raises:
          BadExamples: the parts have different lengths, a weight is below 0 or not a number, or logloss receives values
            that are not from 0 to 1.
        """
        lengths = {part: len(values) for part, values in parts.items()}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{length} of {part}" for part, length in lengths.items())
            raise BadExamples(f"expected the same number of values of each part, found {listed}")
        weight = parts.get("weight")
        if weight is not None and not (weight >= 0).all():
            raise BadExamples(f"expected weights of at least 0, found {weight[~(weight >= 0)][0]:.6g}")
        slices = parts.get("slice")
        no_slice = np.zeros(max(lengths.values()), np.int32)
        self._of.add(no_slice if slices is None else self._slices.numbers_of(slices), parts)

    def areas(self) -> Dict[str, Area]:
        """Return the value of the metric as "", and of each slice by its name, such as "FR" and "others"."""
        found = {"": self._of.area(np.ones(self._slices.number, bool))}
        for each in self._slices.largest(self._most) if self._most else []:
            found[each.name] = self._of.area(each.numbers)
        return found

    def note(self, areas: Mapping[str, Area]) -> str:
        """Return how far ``areas``, the values of this metric, may be from the exact ones, or "" if they are exact."""
        notes = [f"measured on 1 of {2**self._of.level} groups, drawn by a hash"] if self._of.level else []
        if areas[""].error:
            notes.append(f"at most {areas[''].error:.1e} from the exact value")
        most = max((area.error for name, area in areas.items() if name), default=0.0)
        return "; ".join([*notes, f"at most {most:.1e} in slices"] if most else notes)


class MeasuredMetrics(NamedTuple):
    """The value of each metric and of its slices, by name, and a line for each metric whose values are not exact."""

    values: Dict[str, float]
    notes: List[str]


class Measurement:
    """The values of several metrics over all examples that were added, in bounded memory.

    Args:
      place: the function that returned the metrics, for errors.
      readings: the metrics, by name.
    """

    def __init__(self, place: str, readings: Mapping[str, Reading]):
        self._place, self._readings = place, readings
        self._measured = {name: MeasuredMetric(reading.kind, reading.most) for name, reading in readings.items()}

    def add(self, columns: Sequence[np.ndarray]) -> None:
        """Add the columns of a batch, [n] each; columns of different metrics may have different lengths.

        Raises:
          JobError: a metric has no meaning for these examples.
        """
        for name, reading in self._readings.items():
            try:
                self._measured[name].add({part: columns[index] for part, index in reading.columns.items()})
            except BadExamples as error:
                raise JobError(f"{self._place}: the metric {name}: {error}") from None

    def measured(self) -> MeasuredMetrics:
        """Return the metrics of all examples so far, with names such as ``auc``, ``auc/FR`` and ``auc/others``."""
        found = MeasuredMetrics({}, [])
        for metric, measured in self._measured.items():
            areas = measured.areas()
            found.values.update({f"{metric}/{name}" if name else metric: area.value for name, area in areas.items()})
            found.notes.extend(f"{metric}: {note}" for note in [measured.note(areas)] if note)
        return found


def in_words(values: Mapping[str, float]) -> str:
    """Return ``values``, the values of metrics by name, as text such as ``auc 0.7812, gauc undefined``."""
    shown = {name: f"{value:.4g}" if math.isfinite(value) else "undefined" for name, value in values.items()}
    return ", ".join(f"{name} {value}" for name, value in shown.items())
