"""A task's record turns its progress reports into rates and a pace; what is asked of all tasks is counted."""

from typing import Optional, Sequence, Set

import pytest

from launch.agent.supervision.task_records import RATE_WINDOW_S, Roster, TaskRecord, decisive_tasks
from launch.agent.wire.run_request import TaskPlan
from tests.support.agent.histories import run_plan


def record() -> TaskRecord:
    return TaskRecord(TaskPlan("worker:0", "worker", 0, "a", "a:2222", chief=True, spare=False))


def report(task: TaskRecord, now: float, step: int, waited_s: Optional[float]) -> None:
    task.record_progress(now, {"step": step, "examples": 10 * step, "waited_s": waited_s})


def test_the_pace_parts_a_step_into_own_work_and_waiting() -> None:
    task = record()
    report(task, 100.0, 50, 2.0)
    report(task, 102.0, 70, 2.5)
    pace = task.pace()
    assert pace is not None and (pace.own_ms, pace.wait_ms, pace.step_ms) == pytest.approx((75.0, 25.0, 100.0))
    assert task.rates(103.0) == pytest.approx((10.0, 100.0))
    assert task.status().wait_ms == 25.0


def test_only_the_last_seconds_count() -> None:
    task = record()
    report(task, 0.0, 0, 0.0)
    for second in range(20, 40):
        report(task, float(second), second * 10, second * 0.5)
    assert task.samples[0].time >= 39.0 - RATE_WINDOW_S
    pace = task.pace()
    assert pace is not None and pace.wait_ms == pytest.approx(50.0)


def test_where_no_worker_waits_for_another_there_is_no_pace() -> None:
    task = record()
    report(task, 0.0, 0, None)
    report(task, 1.0, 10, None)
    assert task.pace() is None
    assert task.rates(2.0) == pytest.approx((10.0, 100.0))


def test_the_rates_of_a_task_that_tells_nothing_any_more_go_down() -> None:
    task = record()
    for second in range(11):
        report(task, float(second), second * 10, None)
    assert [task.rates(now)[0] for now in (10.0, 12.9, 20.0, 100.0)] == pytest.approx([10.0, 10.0, 5.0, 1.0])


def test_the_rates_of_steps_that_take_long_stay_between_two_of_them() -> None:
    task = record()
    for step in range(3):
        report(task, 20.0 * step, step, None)
    assert task.rates(59.0)[0] == pytest.approx(0.05)


def test_before_two_reports_and_without_a_step_between_them_nothing_is_claimed() -> None:
    task = record()
    assert task.pace() is None
    report(task, 0.0, 5, 0.0)
    assert task.pace() is None
    report(task, 1.0, 5, 1.0)
    assert task.pace() is None


# -- all tasks of a run


def test_tasks_are_counted_by_state_and_their_processes_by_role() -> None:
    roster = Roster(run_plan())
    for name in ("worker:0", "worker:1"):
        roster.turn(roster.by_name[name], "running", process=True)
    roster.turn(roster.by_name["worker:1"], "restarting", process=False)
    assert (roster.number("running"), roster.number("running", "restarting")) == (1, 2)
    assert roster.processes == {"worker": 1}
    assert [task.plan.name for task in roster.live_tasks()] == ["worker:0"]
    assert [task.plan.name for task in roster.pending_tasks()] == ["ps:0", "worker:1"]


def test_a_task_that_turns_into_what_it_is_counts_once() -> None:
    roster = Roster(run_plan())
    for _ in range(3):
        roster.turn(roster.by_name["worker:0"], "running", process=True)
    assert (roster.number("running"), roster.processes["worker"]) == (1, 1)


def test_tasks_are_found_by_their_host() -> None:
    by_host = Roster(run_plan()).by_host
    assert {host: [task.plan.name for task in by_host[host]] for host in by_host} == {
        "a": ["ps:0", "worker:0"],
        "b": ["worker:1"],
    }


def test_a_run_has_succeeded_with_those_of_its_tasks_that_decide() -> None:
    job, programs = Roster(run_plan()), Roster(run_plan(judge="exit"))
    for roster in (job, programs):
        roster.turn(roster.by_name["worker:0"], "succeeded", process=False)
    assert (job.have_succeeded, programs.have_succeeded) == (True, False)


@pytest.mark.parametrize(
    ("tasks", "judge", "who"),
    [
        (["ps:0@a", "worker:0@a", "worker:1@b"], "outcome", {"worker:0"}),
        (["ps:0@a", "chief:0@a", "worker:0@b"], "outcome", {"chief:0"}),
        (["ps:0@a", "chief:0@a", "worker:0@b"], "exit", {"chief:0"}),
        (["ps:0@a", "worker:0@a", "worker:1@b"], "exit", {"worker:0", "worker:1"}),
    ],
)
def test_the_chief_decides_or_where_programs_have_none_every_worker(
    tasks: Sequence[str], judge: str, who: Set[str]
) -> None:
    assert decisive_tasks(run_plan(tasks, judge=judge)) == who
