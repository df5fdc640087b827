"""The loss of a run, as somebody who follows it records it."""

import random
from dataclasses import replace

from launch.view.loss_curve import LossCurve
from tests.support.launch.statuses import status


def test_the_curve_has_what_was_recorded_and_nothing_else() -> None:
    curve = LossCurve(most=8)
    curve.add(status())
    assert curve.points == []
    for step in range(100):
        curve.add(status(global_step=step, loss=float(step)))
        assert len(curve.points) <= 8 and curve.points[0] == (0, 0.0)
        assert all(step == loss for step, loss in curve.points)


def test_training_that_went_back_goes_on_from_there_and_another_run_begins_a_curve() -> None:
    curve = LossCurve()
    for step in (1, 2, 3, 2):
        curve.add(status(global_step=step, loss=10.0 * step))
    assert curve.points == [(1, 10.0), (2, 20.0)]
    curve.add(replace(status(global_step=9, loss=1.0), run="r-2"))
    assert curve.points == [(9, 1.0)]


def test_points_are_about_as_far_apart_at_the_end_as_at_the_beginning() -> None:
    curve = LossCurve(most=16)
    for step in range(10_000):
        curve.add(status(global_step=step, loss=float(step)))
        assert len(curve.points) <= 16
    gaps = [after - before for (before, _), (after, _) in zip(curve.points, curve.points[1:])]
    assert curve.points[0] == (0, 0.0) and curve.points[-1][0] > 8000 and max(gaps) <= 4 * min(gaps)


def test_any_course_of_steps_is_recorded_in_order_and_in_bounds() -> None:
    chance = random.Random(11)
    for _ in range(50):
        curve, step = LossCurve(most=8), 0
        for _ in range(300):
            step = max(0, step + chance.choice([0, 1, 1, 5, 1000, -chance.randrange(1, 50)]))
            curve.add(status(global_step=step, loss=1.0))
            steps = [each for each, _ in curve.points]
            assert steps == sorted(set(steps)) and len(steps) <= 8 and steps[-1] <= step
