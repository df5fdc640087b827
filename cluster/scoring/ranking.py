"""Measure how well scores rank examples of two kinds."""

from typing import Any, Optional

import numpy as np


def area_under_curve(labels: np.ndarray, scores: np.ndarray, weights: Optional[np.ndarray] = None) -> float:
    """Return the area under the ROC curve: how likely a positive example has a higher score than a negative one.

    Computed from ranks, exactly (Mann and Whitney, 1947); equal scores count one half.

    Args:
      labels: [n], above 0.5 for a positive example.
      scores: [n].
      weights: [n], at least 0; by default 1 each.

    Returns:
      From 0 to 1, 0.5 for guessing; NaN where all weight is on examples of one kind, or a score is NaN.
    """
    return grouped_area(labels, scores, None, weights)


def grouped_area(
    labels: np.ndarray, scores: np.ndarray, groups: Optional[np.ndarray], weights: Optional[np.ndarray] = None
) -> float:
    """Return the mean over groups of the area under the ROC curve, weighted by the groups' weights.

    A group without both kinds of examples does not count.

    Args:
      groups: [n], integers; None for one group of all.
      others: as for ``area_under_curve``.

    Returns:
      From 0 to 1; NaN where no group counts, or a score is NaN.
    """
    if not len(labels) or np.isnan(scores).any():
        return float("nan")
    weights = np.ones(len(labels)) if weights is None else np.asarray(weights, np.float64)
    order = np.argsort(scores) if groups is None else np.lexsort((scores, groups))
    scores, weights = scores[order], weights[order]
    positive = np.where(np.asarray(labels)[order] > 0.5, weights, 0.0)
    negative = np.where(np.asarray(labels)[order] > 0.5, 0.0, weights)
    new_group = _begins(np.zeros(len(order)) if groups is None else groups[order])
    ties = np.flatnonzero(new_group | _begins(scores))  # the first of each run of equal scores of one group
    at, of_negative = np.add.reduceat(positive, ties), np.add.reduceat(negative, ties)
    first = np.flatnonzero(new_group[ties])  # the runs with which groups begin
    below = np.cumsum(of_negative) - of_negative
    below -= np.repeat(below[first], np.diff([*first, len(ties)]))
    won, p, n = (np.add.reduceat(each, first) for each in (at * (below + of_negative / 2), at, of_negative))
    counts = (p > 0) & (n > 0)
    return float(np.average(won[counts] / (p * n)[counts], weights=(p + n)[counts])) if counts.any() else float("nan")


def _begins(values: np.ndarray) -> Any:
    return np.concatenate([[True], values[1:] != values[:-1]])
