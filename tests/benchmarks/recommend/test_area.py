"""The area is the share of pairs that a score puts in order."""

import numpy as np

from tests.benchmarks.recommend.area import area


def test_the_area_is_the_share_of_pairs_in_order_where_equal_scores_count_half() -> None:
    random = np.random.RandomState(0)
    for _ in range(20):
        labels, scores = np.arange(30) % 3 == 0, random.randint(0, 8, 30)
        pairs = [(a > b) + 0.5 * (a == b) for a in scores[labels] for b in scores[~labels]]
        assert np.isclose(area(labels, scores), np.mean(pairs))
