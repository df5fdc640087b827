"""The area under the ROC curve."""

from typing import Any

import numpy as np


def area(labels: Any, scores: Any) -> float:
    """Return the probability that a positive example has a higher score than a negative one; equal ones count half."""
    labels, scores = np.asarray(labels) > 0.5, np.asarray(scores)
    _, where, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[where]
    positive, negative = labels.sum(), (~labels).sum()
    return float((ranks[labels].sum() - positive * (positive + 1) / 2) / (positive * negative))
