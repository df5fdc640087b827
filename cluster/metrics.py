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
    """One metric of a model; ``kind`` is the name of its function.

    Attributes:
      tensors: the tensors of the metric by part: label, score, weight, group, value, slice.
      most: the number of slices with results of their own; 0 for a metric without slices.
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
      weight: of each example, at least 0; by default 1.
    """
    return _metric("auc", label=label, score=score, weight=weight)


def grouped_auc(label: Any, score: Any, group: Any, weight: Any = None) -> Metric:
    """Return the mean of each group's area under the ROC curve, weighted by the examples of the group.

    Where a group is a user, the metric is known as GAUC (Zhou et al., "Deep Interest Network", 2018). A group whose
    examples are all of one kind has no area, and does not count.

    Args:
      group: integers or strings. A string counts by its 63-bit fingerprint.
    """
    return _metric("grouped_auc", label=label, score=score, group=group, weight=weight)


def logloss(label: Any, score: Any, weight: Any = None) -> Metric:
    """Return the mean cross entropy of binary labels, in nats.

    Args:
      label: from 0 to 1.
      score: probabilities. A score nearer than 1e-7 to 0 or 1 counts as 1e-7 from it.
    """
    return _metric("logloss", label=label, score=score, weight=weight)


def calibration(label: Any, score: Any, weight: Any = None) -> Metric:
    """Return the mean score over the mean label: above 1 where the model predicts too much.

    Args:
      score: probabilities, or predictions of another quantity that ``label`` measures.
    """
    return _metric("calibration", label=label, score=score, weight=weight)


def mean(value: Any, weight: Any = None) -> Metric:
    """Return the mean of a value."""
    return _metric("mean", value=value, weight=weight)


def by(slices: Any, metric: Metric, most: int = _SLICES) -> Metric:
    """Return the same metric, which is also measured for each slice of the data.

    With the name ``auc``, the slice FR has the name ``auc/FR``.

    Args:
      slices: integers, booleans or strings.
      most: the number of slices with results of their own, 1 to 100; the slices with the most examples have them. The
        examples of all other slices are measured together, as ``others``.

    Raises:
      ValueError: ``metric`` is not from this module, or already has slices, or ``most`` is out of bounds.
    """
    if not isinstance(metric, Metric) or metric.most:
        raise ValueError(f"metrics.by: expected a metric of cluster.metrics without slices, found {metric!r}")
    if type(most) is not int or not 1 <= most <= MOST_SLICES:
        raise ValueError(f"metrics.by: expected most from 1 to {MOST_SLICES}, found {most!r}")
    return replace(metric, tensors={**metric.tensors, "slice": slices}, most=most)


def metrics_of(values: Mapping[str, Any]) -> Dict[str, Metric]:
    """Return the metrics of a model that this module measures.

    A pair of label and score becomes their ``auc``; a pair whose first tensor has no dimensions is one of
    ``tf.metrics``.
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
