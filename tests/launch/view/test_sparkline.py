"""A curve in one line."""

import math
import random

import pytest

from launch.view.robust_scale import BARS, sparkline


def test_the_smallest_and_the_largest_point_have_the_smallest_and_the_largest_bar() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7], 8) == BARS
    assert sparkline([7, 0, 7], 3) == "█▁█"


def test_steep_first_losses_do_not_flatten_the_rest() -> None:
    falling = [90.0, 40.0, *(1 - 0.02 * step for step in range(38))]
    line = sparkline(falling, 40)
    assert line[:3] == "███" and line[-1] == "▁" and len(set(line)) == len(BARS)
    exploding = sparkline([*(1 - 0.02 * step for step in range(38)), 40.0, 90.0], 40)
    assert exploding[0] > exploding[20] and exploding[-1] == "█"


def test_a_loss_that_falls_to_a_hundredth_has_a_logarithmic_scale() -> None:
    assert sparkline([10.0**-power for power in range(8)], 8) == BARS[::-1]


def test_noise_is_smoothed() -> None:
    noisy = [2 - 0.02 * step + 0.3 * (step % 2) for step in range(40)]
    heights = [BARS.index(bar) for bar in sparkline(noisy, 40)]
    assert max(after - before for before, after in zip(heights, heights[1:])) <= 1


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
