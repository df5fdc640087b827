"""Hosts whose clocks differ are on one time line, and the error of that is never larger than it is said to be."""

import math
import random

import pytest

from launch.timeline.clock_shifts import ClockShift
from launch.timeline.flights import TimeLine
from tests.launch.timeline.simulated import BEGAN, LATENCY_S, STEP_S, Recording


def shift_of(found: TimeLine, recording: Recording, worker: int) -> float:
    """By how much the time line has moved a host's times."""
    (line,) = [line for line in found.lines if line.name == f"worker:{worker}"]
    return line.spans[0].began - recording.flight(worker).began[0]


def error_of(found: TimeLine, worker: int) -> float:
    return next(line.error_s for line in found.lines if line.name == f"worker:{worker}")


def test_common_steps_put_clocks_that_differ_by_an_hour_on_one_line() -> None:
    recording = Recording([0.0, 3600.0]).take(50, lambda worker, step: STEP_S * (2 if worker == step % 2 else 1))
    found = recording.line()
    assert shift_of(found, recording, 1) == pytest.approx(-3600, abs=2 * LATENCY_S)
    assert error_of(found, 1) <= 3 * LATENCY_S


@pytest.mark.parametrize("parts", [False, True], ids=["steps that wait once", "steps that wait for each ps"])
def test_the_true_shift_is_never_further_away_than_the_error(parts: bool) -> None:
    drawn = random.Random(7)
    for _ in range(100):
        ahead_s = [0.0, *(drawn.uniform(-100, 100) for _ in range(2))]
        work = {(worker, step): drawn.expovariate(10) for worker in range(3) for step in range(1, 31)}
        recording = Recording(ahead_s, parts).take(30, lambda worker, step: work[worker, step])  # noqa: B023
        found = recording.line()
        for worker in (1, 2):
            assert abs(shift_of(found, recording, worker) + ahead_s[worker]) <= error_of(found, worker) < 1.0


def test_an_exchange_of_times_alone_gives_its_own_error() -> None:
    recording = Recording([5.0, 7.0]).take(3)
    exchanged = {"gpu0": ClockShift(5.1, 0.2), "gpu1": ClockShift(7.0, 0.3)}
    found = recording.line(exchanged, common_steps=False)
    assert shift_of(found, recording, 1) == pytest.approx(-1.9)
    assert error_of(found, 1) == pytest.approx(0.5)


def test_an_exchange_narrows_the_bounds_of_the_steps() -> None:
    recording = Recording([0.0, 10.0], parts=True).take(20)
    exchanged = {"gpu0": ClockShift(0.0, 0.0), "gpu1": ClockShift(10.02, 0.05)}
    both, steps = recording.line(exchanged), recording.line()
    assert error_of(both, 1) < error_of(steps, 1) and error_of(both, 1) < 2 * 0.05
    assert abs(shift_of(both, recording, 1) + 10.0) <= error_of(both, 1)


def test_a_clock_of_which_nothing_is_known_has_no_bound() -> None:
    recording = Recording([0.0, 10.0]).take(3)
    found = recording.line(common_steps=False)
    assert math.isinf(error_of(found, 1)) and shift_of(found, recording, 1) == 0
    assert error_of(found, 0) == 0


def test_a_step_that_was_taken_twice_bounds_nothing() -> None:
    """Elsewhere it may be on record once: that of the other time."""
    recording = Recording([0.0, 0.0]).take(20)
    recording.step = 10
    recording.now += 60
    for spans in recording.spans:
        spans.append(recording.span("starting", recording.now - 60, recording.now))
    recording.take(5)
    del recording.spans[1][-5:]  # worker:1 has the steps 11 to 15 of the first time alone
    found = recording.line()
    assert abs(shift_of(found, recording, 1)) <= error_of(found, 1) < STEP_S


def test_steps_that_contradict_each_other_bound_nothing_and_the_exchange_counts() -> None:
    recording = Recording([0.0, 0.0]).take(20)
    for span in recording.spans[1][10:]:
        span["began"] += 50
        span["ended"] += 50
    exchanged = {"gpu0": ClockShift(0.0, 0.1), "gpu1": ClockShift(0.0, 0.1)}
    assert error_of(recording.line(exchanged), 1) == pytest.approx(0.2)


def test_a_clock_that_contradicts_the_steps_is_not_believed() -> None:
    recording = Recording([0.0, 0.0]).take(20)
    found = recording.line({"gpu0": ClockShift(0.0, 0.1), "gpu1": ClockShift(40.0, 0.1)})
    assert abs(shift_of(found, recording, 1)) <= error_of(found, 1) < STEP_S


def test_the_time_line_has_the_clock_of_the_chiefs_host() -> None:
    found = Recording([123.0, 0.0]).take(3).line()
    assert found.reference == "gpu0" and found.lines[0].spans[0].began == BEGAN + 123.0
