"""Metrics that a model returns in addition to its loss, measured on held-out examples and during training.

    return loss, {
        "auc": metrics.by(country, metrics.auc(label, score)),
        "gauc": metrics.grouped_auc(label, score, user),
        "calibration": metrics.calibration(label, score),
    }

Every argument is a tensor with one value per example, of shape [batch]. The batch may be a part of the model's own
batch, for example the examples that have a label.
"""

from dataclasses import dataclass, replace
from typing import Any, Dict, Mapping, Optional

MOST_SLICES = 100
_SLICES = 20


@dataclass(frozen=True)
class Metric:
    """One metric of a model; ``kind`` is the name of the function that made it.

    Attributes:
      tensors: the tensors of the metric, by the names of their parts: label, score, weight, group, value, slice.
      most: the largest number of slices that have results of their own; 0 for a metric without slices.
    """

    kind: str
    tensors: Mapping[str, Any]
    most: int = 0


def auc(label: Any, score: Any, weight: Any = None) -> Metric:
    """Return the area under the ROC curve.

    The area is the probability that a positive example has a higher score than a negative one; equal scores count half.

    Args:
      label: above 0.5 for a positive example.
      score: a probability, a logit, or any other number.
      weight: the weight of each example, at least 0; by default 1.
    """
    return _metric("auc", label=label, score=score, weight=weight)


def grouped_auc(label: Any, score: Any, group: Any, weight: Any = None) -> Metric:
    """Return the mean of the groups' areas under the ROC curve, each weighted by the total weight of its examples.

    Where a group is a user, the metric is known as GAUC (Zhou et al., "Deep Interest Network", 2018). A group whose
    examples are all positive, or all negative, has no area and does not count.

    Args:
      label, score, weight: as for ``auc``.
      group: the group of each example, an integer or a string. Strings are compared by 63-bit fingerprints.
    """
    return _metric("grouped_auc", label=label, score=score, group=group, weight=weight)


def logloss(label: Any, score: Any, weight: Any = None) -> Metric:
    """Return the mean cross entropy of binary labels, in nats.

    Args:
      label: from 0 to 1.
      score: probabilities. A score below 1e-7 counts as 1e-7, and a score above 1 - 1e-7 counts as 1 - 1e-7.
    """
    return _metric("logloss", label=label, score=score, weight=weight)


def calibration(label: Any, score: Any, weight: Any = None) -> Metric:
    """Return the mean score divided by the mean label: above 1 if the model's predictions are too high.

    Args:
      score: probabilities, or predictions of another quantity that ``label`` measures.
    """
    return _metric("calibration", label=label, score=score, weight=weight)


def mean(value: Any, weight: Any = None) -> Metric:
    """Return the mean of ``value``, weighted by ``weight``."""
    return _metric("mean", value=value, weight=weight)


def by(slices: Any, metric: Metric, most: int = _SLICES) -> Metric:
    """Return ``metric`` with ``slices``: it is measured on all examples, and also on each of the largest slices.

    If the model returns the metric under the name ``auc``, its value for the slice FR has the name ``auc/FR``.

    Args:
      slices: the slice of each example: integers, booleans or strings.
      most: the largest number of slices that have results of their own, 1 to 100: those with the most examples. The
        examples of all other slices are measured together, as ``others``.

    Raises:
      ValueError: ``metric`` is not from this module, or already has slices, or ``most`` is out of bounds.
    """
    if not isinstance(metric, Metric) or metric.most:
        raise ValueError(f"metrics.by: expected a metric of cluster.metrics without slices, found {metric!r}")
    if type(most) is not int or not 1 <= most <= MOST_SLICES:
        raise ValueError(f"metrics.by: expected `most` to be from 1 to {MOST_SLICES}, found {most!r}")
    return replace(metric, tensors={**metric.tensors, "slice": slices}, most=most)


def metrics_of(values: Mapping[str, Any]) -> Dict[str, Metric]:
    """Return the metrics that this module measures among ``values``, a model's metrics by name.

    A pair of a label and a score becomes their ``auc``. The result leaves out tensors with one value per example, and
    results of ``tf.metrics``, which are pairs whose first tensor is a scalar.
    """
    found: Dict[str, Metric] = {}
    for name, value in values.items():
        metric = value if isinstance(value, Metric) else _of_pair(value)
        if metric is not None:
            found[name] = metric
    return found


def _of_pair(value: Any) -> Optional[Metric]:
    is_pair = isinstance(value, tuple) and len(value) == 2 and value[0].shape.ndims != 0
    return auc(*value) if is_pair else None


def _metric(kind: str, **tensors: Any) -> Metric:
    return Metric(kind, {part: tensor for part, tensor in tensors.items() if tensor is not None})
