"""The area under the ROC curve."""

import math

import numpy as np
import pytest

from cluster.scoring.measures import area_under_curve


def by_pairs(labels: np.ndarray, scores: np.ndarray) -> float:
    """Every positive example against every negative one."""
    differences = np.subtract.outer(scores[labels == 1], scores[labels == 0])
    return float(((differences > 0) + 0.5 * (differences == 0)).mean())


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_share_of_pairs_in_the_right_order_and_equal_scores_count_half(seed: int) -> None:
    random = np.random.RandomState(seed)
    labels, scores = random.randint(0, 2, 50), random.randint(0, 10, 50).astype(np.float32)
    assert area_under_curve(labels, scores) == pytest.approx(by_pairs(labels, scores))


def test_right_order_is_1_wrong_order_is_0_and_no_order_is_a_half() -> None:
    labels = np.array([0, 0, 1, 1])
    assert area_under_curve(labels, np.array([1, 2, 3, 4])) == 1
    assert area_under_curve(labels, np.array([4, 3, 2, 1])) == 0
    assert area_under_curve(labels, np.zeros(4)) == 0.5


def test_where_there_is_nothing_to_rank_it_is_no_number() -> None:
    assert math.isnan(area_under_curve(np.ones(3), np.arange(3)))
    assert math.isnan(area_under_curve(np.array([0, 1]), np.array([np.nan, 1])))
