"""One value of a metric over the arrays of its parts.

Every function takes arrays of one number per example, [n], and returns NaN where the value is not defined.
"""

from typing import Callable, Dict, Iterable, Iterator, Mapping, Optional, Tuple

import numpy as np

from cluster.scoring.ranking import area_under_curve, grouped_area

_AT_ONCE = 1 << 20  # examples: with what is computed of them
CLIP = 1e-7  # from 0 and 1, as far as a probability of float32 is known


class BadExamples(ValueError):
    """Examples for which a metric has no meaning, because the model passes something else than it should."""


def mean(value: np.ndarray, weight: Optional[np.ndarray] = None) -> float:
    """Return the weighted mean of ``value``."""
    return _mean((value[part].astype(np.float64), _weight(weight, part)) for part in _parts(len(value)))


def _mean(parts: Iterable[Tuple[np.ndarray, np.ndarray]]) -> float:
    """Return the mean of values with weights, a part at a time."""
    sum_ = total = 0.0
    for value, weight in parts:
        sum_, total = sum_ + float((value * weight).sum()), total + float(weight.sum())
    return sum_ / total if total else float("nan")


def _parts(length: int) -> Iterator[slice]:
    return (slice(begin, min(begin + _AT_ONCE, length)) for begin in range(0, length, _AT_ONCE))


def _weight(weight: Optional[np.ndarray], part: slice) -> np.ndarray:
    return np.ones(part.stop - part.start) if weight is None else weight[part].astype(np.float64)


def calibration(label: np.ndarray, score: np.ndarray, weight: Optional[np.ndarray] = None) -> float:
    """Return the mean score over the mean label."""
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
    return _mean((_entropy(label[part], score[part]), _weight(weight, part)) for part in _parts(len(label)))


def _entropy(label: np.ndarray, score: np.ndarray) -> np.ndarray:
    likely = np.clip(score.astype(np.float64), CLIP, 1 - CLIP)
    found: np.ndarray = -(label * np.log(likely) + (1 - label) * np.log1p(-likely))
    return found


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
