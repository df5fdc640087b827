"""A curve in one line."""

import math
import random

import pytest

from launch.view.loss_curve import BARS, sparkline


def test_the_smallest_and_the_largest_point_have_the_smallest_and_the_largest_bar() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7], 8) == BARS
    assert sparkline([7, 0, 7], 3) == "█▁█"


def test_many_points_share_a_bar() -> None:
    assert sparkline([0, 0, 7, 7, 0, 0], 3) == "▁█▁"


@pytest.mark.parametrize(("points", "width"), [([], 10), ([1.0], 10), ([1.0, 2.0], 1), ([math.nan, math.inf, 1.0], 9)])
def test_what_is_no_curve_is_empty(points: list, width: int) -> None:  # type: ignore[type-arg]
    assert sparkline(points, width) == ""


def test_equal_points_are_a_flat_line() -> None:
    assert sparkline([3.0] * 50, 10) == "▁" * 10


def test_a_curve_of_any_points_has_its_width_and_known_bars() -> None:
    chance = random.Random(5)
    for _ in range(500):
        points = [
            chance.choice([chance.gauss(0, 1e3), math.nan, -math.inf, 1e308, -1e308])
            for _ in range(chance.randrange(60))
        ]
        line = sparkline(points, chance.randrange(50))
        assert len(line) <= 50 and set(line) <= set(BARS)
