"""A curve in one line."""

import math
import random

import pytest

from launch.view.sparkline import BARS, Curve, sparkline


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


def test_the_memory_is_bounded_and_keeps_the_whole_course() -> None:
    curve = Curve(most=16)
    for step in range(10_000):
        curve.add(step, float(step))
        assert len(curve.points) <= 16
    assert curve.points[0] == 0.0 and curve.points == sorted(curve.points) and curve.points[-1] > 8000


def test_a_step_that_was_there_before_adds_no_point() -> None:
    curve = Curve()
    for step in (1, 2, 2, 1, 3):
        curve.add(step, float(step))
    assert curve.points == [1.0, 2.0, 3.0]
