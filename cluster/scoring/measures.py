"""Values of a model's metrics over arrays of their parts: for all examples, and for the largest slices of the data.

Every function of one metric takes arrays of one number per example, [n], and returns NaN where the metric is undefined.

The area under the ROC curve is computed from ranks, as it measures how well scores rank examples of two kinds.
"""

import math
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

import numpy as np

from cluster.scoring.examples import largest_slices

_AT_ONCE = 1 << 20  # examples: with the values computed from them


def area_under_curve(
    label: np.ndarray, score: np.ndarray, group: Optional[np.ndarray] = None, weight: Optional[np.ndarray] = None
) -> float:
    """Return the area under the ROC curve: how likely a positive example has a higher score than a negative one.

    The area is computed exactly from ranks (Mann and Whitney, 1947); equal scores count one half. With ``group``, the
    result is the mean of the groups' areas, each weighted by the total weight of the group's examples. A group without
    both kinds of examples does not count.

    Args:
      label: [n], above 0.5 for a positive example.
      score: [n].
      group: [n], integers; None for one group of all.
      weight: [n], at least 0; by default 1 each.

    Returns:
      From 0 to 1, 0.5 for guessing; NaN where all weight is on examples of one kind, or a score is NaN.
    """
    if not len(label) or np.isnan(score).any():
        return float("nan")
    order = np.argsort(score) if group is None else np.lexsort((score, group))
    areas = _Areas()
    for begin in range(0, len(order), _AT_ONCE):
        some = order[begin : begin + _AT_ONCE]
        weights = np.ones(len(some)) if weight is None else np.asarray(weight[some], np.float64)
        is_positive = np.asarray(label)[some] > 0.5
        groups = np.zeros(len(some), np.int8) if group is None else group[some]
        areas.add(groups, score[some], np.where(is_positive, weights, 0.0), np.where(is_positive, 0.0, weights))
    return areas.mean()


class _Areas:
    """The areas of groups. Examples arrive in the order of group and score, any number at once.

    Equal scores of a group form a run. The last run may continue with the next examples, and so may its group: until
    then both are open.
    """

    def __init__(self) -> None:
        self._sum = self._weight = 0.0  # of the areas of groups that have ended
        self._won = self._positive = self._negative = 0.0  # of the open group, without the open run
        self._run: List[np.ndarray] = [np.zeros(0)] * 4  # group, score and weights of the open run, as one example

    def add(self, *examples: np.ndarray) -> None:
        """Add examples: their groups, scores, weights as positive examples, and weights as negative ones, [n] each.

        One of an example's two weights is 0.
        """
        if len(self._run[0]):
            examples = tuple(np.concatenate(pair) for pair in zip(self._run, examples))
        group, score, positive, negative = examples
        new_group = _begins(group)
        runs = np.flatnonzero(new_group | _begins(score))  # the first example of each run
        p, n = np.add.reduceat(positive, runs), np.add.reduceat(negative, runs)
        self._run = [group[-1:], score[-1:], p[-1:].copy(), n[-1:].copy()]
        p[-1] = n[-1] = 0.0
        self._add_runs(np.flatnonzero(new_group[runs]), p, n)

    def _add_runs(self, first: np.ndarray, p: np.ndarray, n: np.ndarray) -> None:
        """Add runs by their weights; ``first`` has the index of the first run of each group, 0 for the open group."""
        below = np.cumsum(n) - n
        below -= np.repeat(below[first], np.diff([*first, len(n)]))
        won, positive, negative = (np.add.reduceat(each, first) for each in (p * (below + n / 2), p, n))
        won[0] += self._won + positive[0] * self._negative
        positive[0] += self._positive
        negative[0] += self._negative
        self._end(won[:-1], positive[:-1], negative[:-1])
        self._won, self._positive, self._negative = (float(each[-1]) for each in (won, positive, negative))

    def _end(self, won: np.ndarray, positive: np.ndarray, negative: np.ndarray) -> None:
        counts = (positive > 0) & (negative > 0)
        won, positive, negative = won[counts], positive[counts], negative[counts]
        self._sum += float((won / (positive * negative) * (positive + negative)).sum())
        self._weight += float((positive + negative).sum())

    def mean(self) -> float:
        """Return the mean of the groups' areas, weighted by the groups' weights; NaN if no group has an area.

        Call it once, after all examples were added.
        """
        p, n = self._run[2:]
        self._end(self._won + p * (self._negative + n / 2), self._positive + p, self._negative + n)
        return self._sum / self._weight if self._weight else float("nan")


def _begins(values: np.ndarray) -> Any:
    return np.concatenate([[True], values[1:] != values[:-1]])


CLIP = 1e-7  # distance from 0 and 1, the precision of a float32 probability


class BadExamples(ValueError):
    """Examples for which a metric has no meaning, because the model passes wrong values."""


def mean(value: np.ndarray, weight: Optional[np.ndarray] = None) -> float:
    """Return the mean of ``value``, weighted by ``weight``; NaN if all weights are 0."""
    return _mean(lambda part: value[part].astype(np.float64), len(value), weight)


def _mean(values: Callable[[slice], np.ndarray], length: int, weight: Optional[np.ndarray]) -> float:
    """Return the mean of values that are computed in parts."""
    sum_ = total = 0.0
    for begin in range(0, length, _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        value = values(part)
        weights = np.ones(len(value)) if weight is None else weight[part].astype(np.float64)
        sum_, total = sum_ + float((value * weights).sum()), total + float(weights.sum())
    return sum_ / total if total else float("nan")


def calibration(label: np.ndarray, score: np.ndarray, weight: Optional[np.ndarray] = None) -> float:
    """Return the mean score divided by the mean label; NaN if the mean label is 0."""
    predicted, observed = mean(score, weight), mean(label, weight)
    return predicted / observed if observed else float("nan")


def logloss(label: np.ndarray, score: np.ndarray, weight: Optional[np.ndarray] = None) -> float:
    """Return the mean cross entropy of binary labels, in nats.

    Raises:
      BadExamples: a label or a score is not from 0 to 1.
    """
    for name, values in (("labels", label), ("scores", score)):
        outside = values[(values < 0) | (values > 1)]
        if len(outside):
            raise BadExamples(f"expected {name} from 0 to 1, found {outside[0]:.6g}; pass probabilities, not logits")
    return _mean(lambda part: _entropy(label[part], score[part]), len(label), weight)


def _entropy(label: np.ndarray, score: np.ndarray) -> np.ndarray:
    likely = np.clip(score.astype(np.float64), CLIP, 1 - CLIP)
    found: np.ndarray = -(label * np.log(likely) + (1 - label) * np.log1p(-likely))
    return found


_BY_KIND: Dict[str, Callable[..., float]] = {
    "auc": area_under_curve,
    "grouped_auc": area_under_curve,
    "logloss": logloss,
    "calibration": calibration,
    "mean": mean,
}


def measure(kind: str, parts: Mapping[str, np.ndarray]) -> float:
    """Return the value of the metric ``kind`` of ``cluster.metrics`` for ``parts``, arrays [n] by the name of the part.

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
    return _BY_KIND[kind](**parts)


class Reading(NamedTuple):
    """A metric whose parts are columns of examples; ``columns`` maps each part to the index of its column."""

    kind: str
    columns: Mapping[str, int]
    most: int  # slices with results of their own


def read_metrics(readings: Mapping[str, Reading], columns: Sequence[np.ndarray]) -> Dict[str, float]:
    """Return the value of each metric and of its slices, such as ``auc``, ``auc/FR`` and ``auc/others``.

    An undefined value is NaN.

    Args:
      readings: the metrics, by name.
      columns: arrays [n]; columns of different metrics may have different lengths.

    Raises:
      BadExamples: a metric has no meaning for its columns; the error names the metric.
    """
    found: Dict[str, float] = {}
    for name, reading in readings.items():
        parts = {part: columns[index] for part, index in reading.columns.items()}
        try:
            found.update(_with_slices(name, reading, parts))
        except BadExamples as error:
            raise BadExamples(f"the metric {name}: {error}") from None
    return found


def in_words(values: Mapping[str, float]) -> str:
    """Return ``values``, the values of metrics by name, as text such as ``auc 0.7812, gauc undefined``."""
    shown = {name: f"{value:.4g}" if math.isfinite(value) else "undefined" for name, value in values.items()}
    return ", ".join(f"{name} {value}" for name, value in shown.items())


def _with_slices(name: str, reading: Reading, parts: Dict[str, np.ndarray]) -> Dict[str, float]:
    values = parts.pop("slice", None)
    found = {name: measure(reading.kind, parts)}
    if values is None:
        return found
    if len(values) != len(next(iter(parts.values()))):
        raise BadExamples(f"expected one slice for each example, found {len(values)} slices")
    for each in largest_slices(values, reading.most):
        found[f"{name}/{each.name}"] = measure(reading.kind, {part: of[each.examples] for part, of in parts.items()})
    return found
