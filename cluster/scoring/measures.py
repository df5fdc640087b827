"""One value of a metric over the arrays of its parts.

Every function takes arrays of one number per example, [n], and returns NaN where the value is not defined.
"""

from typing import Callable, Dict, Mapping, Optional

import numpy as np

from cluster.scoring.ranking import area_under_curve, grouped_area

CLIP = 1e-7  # from 0 and 1, as far as a probability of float32 is known


class BadExamples(ValueError):
    """Examples for which a metric has no meaning, because the model passes something else than it should."""


def mean(value: np.ndarray, weight: Optional[np.ndarray] = None) -> float:
    """Return the weighted mean of ``value``."""
    value = value.astype(np.float64)
    weight = np.ones(len(value)) if weight is None else weight.astype(np.float64)
    total = float(weight.sum())
    return float((value * weight).sum() / total) if total else float("nan")


def calibration(label: np.ndarray, score: np.ndarray, weight: Optional[np.ndarray] = None) -> float:
    """Return the mean score over the mean label."""
    predicted, observed = mean(score, weight), mean(label, weight)
    return predicted / observed if observed else float("nan")


def logloss(label: np.ndarray, score: np.ndarray, weight: Optional[np.ndarray] = None) -> float:
    """Return the mean cross entropy of binary labels, in nats.

    Raises:
      BadExamples: a label or a score is not from 0 to 1.
    """
    for part, values in (("labels", label), ("scores", score)):
        outside = values[(values < 0) | (values > 1)]
        if len(outside):
            raise BadExamples(f"expected {part} from 0 to 1, found {outside[0]:.6g}; pass probabilities, not logits")
    likely = np.clip(score.astype(np.float64), CLIP, 1 - CLIP)
    return mean(-(label * np.log(likely) + (1 - label) * np.log1p(-likely)), weight)


_BY_KIND: Dict[str, Callable[..., float]] = {
    "auc": lambda label, score, weight=None: area_under_curve(label, score, weight),
    "grouped_auc": lambda label, score, group, weight=None: grouped_area(label, score, group, weight),
    "logloss": logloss,
    "calibration": calibration,
    "mean": mean,
}


def measure(kind: str, parts: Mapping[str, np.ndarray]) -> float:
    """Return the value of a metric of ``cluster.metrics`` over its parts, [n] each.

    Raises:
      BadExamples: the parts are of different lengths, a weight is below 0 or no number, or logloss gets no
        probabilities.
    """
    lengths = {part: len(values) for part, values in parts.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{length} of {part}" for part, length in lengths.items())
        raise BadExamples(f"expected as many values of each part, found {listed}")
    weight = parts.get("weight")
    if weight is not None and not (weight >= 0).all():
        raise BadExamples(f"expected weights of at least 0, found {weight[~(weight >= 0)][0]:.6g}")
    return _BY_KIND[kind](**parts)
