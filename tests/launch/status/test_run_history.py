"""The learning curve of a run is bounded, even, and continues where training does."""

import json
import math
import random
from itertools import accumulate
from typing import List

from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.protocol.loss_points import LossPoint
from cluster.protocol.typed_json import from_values, to_values
from launch.status.run_history import MOST, MOST_EVENTS, Curve, RunHistory

LARGEST = 2 << 20  # bytes, for ten million steps


def curve_of(*points: LossPoint, most: int = MOST) -> Curve:
    curve = Curve(most)
    for point in points:
        curve.add(point, 10.0)
    return curve


def shown(curve: Curve) -> RunHistory:
    curve.complete()
    return curve.shown


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 12))
def test_ten_million_steps_fit_the_bound_and_are_even(seed: int, metrics: int) -> None:
    chance, curve = random.Random(seed), Curve()
    gaps = [chance.randint(1, 20_000) for _ in range(1000)]
    for gap, step in zip(gaps, accumulate(gaps)):
        curve.add(LossPoint(step, 1 / 3 + 1 / step, gap), 1e3 / 7)
        curve.evaluate(step, {f"a_metric_of_the_author_{number}": 1 / 7 for number in range(metrics)})
        curve.mark("checkpoint", step)
    found = shown(curve)
    assert MOST // 4 <= len(found.step) <= MOST and found.step == sorted(set(found.step))
    assert found.step[-1] == sum(gaps) and len(found.evaluations) <= MOST_EVENTS
    assert max(b - a for a, b in zip(found.step, found.step[1:])) <= 4 * sum(gaps) / len(found.step) + 40_000
    assert len(json.dumps(to_values(found))) < LARGEST / 20  # every status has it


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 200), st.floats(-10, 10)), min_size=1, max_size=100))
def test_any_course_of_steps_is_in_order_in_bounds_and_ends_at_the_newest(course: List[tuple]) -> None:  # type: ignore[type-arg]
    curve = Curve(most=8)
    for step, loss in course:
        curve.add(LossPoint(step, loss, 1), 1.0)
        found = shown(curve)
        assert found.step == sorted(set(found.step)) and found.step[-1] == step and len(found.step) <= 8
        assert all(point is not None and -10 <= point <= 10 for point in found.loss)


def test_the_mean_of_a_range_weighs_its_steps() -> None:
    curve = curve_of(*(LossPoint(step, float(step), 1) for step in range(1, 10)), most=4)
    found = shown(curve)
    assert found.step == [3, 7, 9] and found.loss == [2.0, 5.5, 8.5]
    assert shown(curve_of(LossPoint(4, 1.0, 3), LossPoint(5, 5.0, 1), most=1)).loss == [2.0]


def test_a_loss_that_is_no_number_is_a_gap() -> None:
    found = shown(curve_of(LossPoint(1, math.nan, 1), LossPoint(2, 1.0, 1)))
    assert found.loss == [None, 1.0] and [*found.points] == [(2, 1.0)]


def test_training_that_returns_to_a_checkpoint_continues_from_there() -> None:
    curve = curve_of(*(LossPoint(step, 1.0, 1) for step in range(1, 11)))
    curve.evaluate(4, {"auc": 0.5})
    curve.evaluate(8, {"auc": 0.6})
    curve.add(LossPoint(6, 3.0, 1), 1.0)
    found = shown(curve)
    assert found.step == [1, 2, 3, 4, 5, 6] and found.loss[-1] == 3.0
    assert [each["step"] for each in found.evaluations] == [4]


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 1200), st.integers(1, 300))
def test_a_run_that_continues_another_has_one_curve_of_even_points(steps: int, apart: int) -> None:
    former = curve_of(*(LossPoint(step * apart, 1.0, apart) for step in range(1, steps + 1)))
    curve = Curve()
    curve.restore(from_values(RunHistory, json.loads(json.dumps(to_values(shown(former))))))
    assert shown(curve) == shown(former)
    for step in range(steps + 1, 2 * steps + 1):
        curve.add(LossPoint(step * apart, 2.0, apart), 1.0)
    found = shown(curve)
    whole = shown(curve_of(*(LossPoint(step * apart, 1.0, apart) for step in range(1, 2 * steps + 1))))
    assert found.step[-1] == 2 * steps * apart and len(found.step) <= MOST
    assert abs(len(found.step) - len(whole.step)) <= len(whole.step) / 2 + 2
    assert {1.0, 2.0} <= {*found.loss}


def test_the_shown_curve_is_the_same_object_until_a_range_is_complete() -> None:
    curve = curve_of(*(LossPoint(step, 1.0, 1) for step in range(1, 10)), most=4)  # ranges of 4 steps
    before = curve.shown
    curve.add(LossPoint(10, 1.0, 1), 1.0)
    assert curve.shown is before
    curve.add(LossPoint(12, 1.0, 1), 1.0)
    assert curve.shown.step == [3, 7, 10, 12]


def test_events_are_bounded_and_their_newest_is_kept_once() -> None:
    curve = Curve()
    for step in [*range(1, 1000), 999]:
        curve.mark("checkpoint", step)
        curve.evaluate(step, {"auc": math.nan})
    found = shown(curve)
    assert len(found.marks["checkpoint"]) <= MOST_EVENTS and found.marks["checkpoint"][-2:] != [999, 999]
    assert found.evaluations[-1] == {"auc": None, "step": 999}
