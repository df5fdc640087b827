"""A task's record turns its progress reports into rates and a pace."""

from typing import Optional

import pytest

from launch.agent.supervision.record import LONGEST_PAUSE_S, RATE_WINDOW_S, TaskRecord
from launch.agent.wire.run_plan import TaskPlan


def record() -> TaskRecord:
    return TaskRecord(TaskPlan("worker:0", "worker", 0, "a", "a:2222", True))


def told(task: TaskRecord, now: float, step: int, waited_s: Optional[float]) -> None:
    task.remember(now, {"step": step, "examples": 10 * step, "waited_s": waited_s})


def test_the_pace_parts_a_step_into_own_work_and_waiting() -> None:
    task = record()
    told(task, 100.0, 50, 2.0)
    told(task, 102.0, 70, 2.5)
    pace = task.pace()
    assert pace is not None and (pace.own_ms, pace.wait_ms, pace.step_ms) == pytest.approx((75.0, 25.0, 100.0))
    assert task.rates(103.0) == pytest.approx((10.0, 100.0))
    assert task.status().wait_ms == 25.0


def test_only_the_last_seconds_count() -> None:
    task = record()
    told(task, 0.0, 0, 0.0)
    for second in range(20, 40):
        told(task, float(second), second * 10, second * 0.5)
    assert task.history[0].time >= 39.0 - RATE_WINDOW_S
    pace = task.pace()
    assert pace is not None and pace.wait_ms == pytest.approx(50.0)


def test_where_no_worker_waits_for_another_there_is_no_pace() -> None:
    task = record()
    told(task, 0.0, 0, None)
    told(task, 1.0, 10, None)
    assert task.pace() is None
    assert task.rates(2.0) == pytest.approx((10.0, 100.0))


def test_the_rates_of_a_task_that_tells_nothing_any_more_go_down() -> None:
    task = record()
    for second in range(11):
        told(task, float(second), second * 10, None)
    assert [task.rates(now)[0] for now in (10.0, 12.9, 20.0, 100.0)] == pytest.approx([10.0, 10.0, 5.0, 1.0])


def test_the_rates_of_steps_that_take_long_stay_between_two_of_them() -> None:
    task = record()
    for step in range(3):
        told(task, 20.0 * step, step, None)
    assert task.rates(59.0)[0] == pytest.approx(0.05)


def test_before_two_reports_and_without_a_step_between_them_nothing_is_claimed() -> None:
    task = record()
    assert task.pace() is None
    told(task, 0.0, 5, 0.0)
    assert task.pace() is None
    told(task, 1.0, 5, 1.0)
    assert task.pace() is None


def test_the_pause_before_the_next_attempt_doubles_up_to_a_minute_however_often_it_failed() -> None:
    task, pauses = record(), []
    for task.failures in (0, 1, 5, 6, 10_000):
        pauses.append(task.pause_s(1.0))
    assert pauses == [1.0, 2.0, 32.0, LONGEST_PAUSE_S, LONGEST_PAUSE_S]


def test_a_pause_that_begins_with_more_than_a_minute_stays_as_it_is() -> None:
    task = record()
    task.failures = 3
    assert task.pause_s(300.0) == 300.0
