"""Measure how well scores rank examples of two kinds."""

import numpy as np


def area_under_curve(labels: np.ndarray, scores: np.ndarray) -> float:
    """Return the area under the ROC curve: how likely a positive example has a higher score than a negative one.

    Computed from ranks, exactly (Mann and Whitney, 1947); equal scores count one half.

    Args:
      labels: [n], above 0.5 for a positive example.
      scores: [n].

    Returns:
      From 0 to 1, 0.5 for guessing; NaN where all examples are of one kind, or a score is NaN.
    """
    positive = np.asarray(labels) > 0.5
    n, m = int(positive.sum()), int((~positive).sum())
    if n == 0 or m == 0 or np.isnan(scores).any():
        return float("nan")
    _, where, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2  # equal scores share the mean of their ranks
    return float((ranks[where[positive]].sum() - n * (n + 1) / 2) / (n * m))
