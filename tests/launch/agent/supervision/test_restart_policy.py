"""Tasks get their next attempts in order, after growing pauses, as long as one may help."""

from dataclasses import replace
from typing import List, Tuple

from launch.agent.protocol.messages import RestartRequested, Start, Stop, StopRequested, Tick
from launch.agent.supervision.elastic import Formations
from launch.agent.supervision.restart_policy import LONGEST_PAUSE_S, Restarts, pause_s
from launch.agent.supervision.run_state import SupervisedRun
from launch.agent.supervision.task_records import TaskRecord
from tests.support.agent.histories import (
    Replay,
    advanced,
    failed,
    left,
    run_plan,
    started,
    succeeded,
    with_evaluator,
)


def three_tasks() -> Tuple[Restarts, List[TaskRecord]]:
    """A queue, and the tasks of its run."""
    run = SupervisedRun(run_plan(["worker:0@a", "worker:1@a", "worker:2@a"]))
    return Restarts(run, Formations(run)), list(run.tasks.values())


def test_tasks_are_due_in_the_order_of_their_times_and_once() -> None:
    restarts, (first, second, later) = three_tasks()
    restarts.put(later, 9.0)
    restarts.put(second, 2.0)
    restarts.put(first, 1.0)
    assert restarts.pop_due(0.5) == []
    assert restarts.pop_due(2.0) == [first, second]
    assert restarts.pop_due(8.9) == []
    assert restarts.pop_due(9.0) == [later]
    assert restarts.pop_due(99.0) == []


def test_the_newest_time_counts() -> None:
    restarts, (task, *_) = three_tasks()
    restarts.put(task, 5.0)
    restarts.put(task, 1.0)
    assert restarts.pop_due(1.0) == [task]
    assert restarts.pop_due(5.0) == []


def test_a_task_that_no_longer_waits_is_passed_over() -> None:
    restarts, (task, *_) = three_tasks()
    restarts.put(task, 1.0)
    task.state = "stopped"
    assert restarts.pop_due(1.0) == []


def test_the_pause_before_the_next_attempt_doubles_up_to_a_minute_however_often_it_failed() -> None:
    pauses = [pause_s(failures, 1.0) for failures in (0, 1, 5, 6, 10_000)]
    assert pauses == [1.0, 2.0, 32.0, LONGEST_PAUSE_S, LONGEST_PAUSE_S]


def test_a_pause_that_begins_with_more_than_a_minute_stays_as_it_is() -> None:
    assert pause_s(3, 300.0) == 300.0


# -- failures and restarts


def test_a_failed_task_starts_again_after_a_backoff_that_doubles() -> None:
    replay = Replay(restart_max=3, backoff_s=2.0)
    replay.up()
    now = 10.0
    for attempt, wait_s in enumerate([2.0, 4.0, 8.0]):
        assert replay.at(now, failed("worker:1", attempt)) == []
        assert replay.states()["worker:1"] == "restarting"
        assert replay.at(now + wait_s - 0.1) == []
        now += wait_s
        assert replay.at(now) == [Start("worker:1", attempt + 1)]
        assert replay.states()["worker:1"] == "starting"


def test_after_the_last_restart_the_run_fails_and_names_task_host_attempt_and_cause() -> None:
    replay = Replay(restart_max=1)
    replay.up()
    replay.at(1, failed("worker:1"))
    replay.at(2, Tick(), started("worker:1", 1))
    orders = replay.at(3, failed("worker:1", attempt=1))
    assert replay.run.state.cause == "worker:1@b (attempt 2 of 2): it broke"
    assert replay.states()["worker:1"] == "failed"
    assert orders == [Stop("worker:0", 10.0)]


def test_without_restarts_the_cause_counts_no_attempts() -> None:
    replay = Replay(restart_max=0)
    replay.up()
    replay.at(1, failed("worker:1"))
    assert replay.run.state.cause == "worker:1@b: it broke"


def test_a_task_that_says_another_start_would_not_help_is_not_restarted() -> None:
    replay = Replay(restart_max=3)
    replay.up()
    replay.at(1, failed("worker:1", retry=False))
    assert replay.states()["worker:1"] == "failed"
    assert replay.run.state.cause == "worker:1@b: it broke"


def test_a_task_of_which_its_agent_says_that_no_attempt_mends_it_is_not_restarted() -> None:
    replay = Replay(restart_max=3, judge="exit")
    replay.up()
    replay.at(1, replace(left("worker:1", code=1), cause="no tensorflow", retry=False))
    assert (replay.states()["worker:1"], replay.run.state.cause) == ("failed", "worker:1@b: no tensorflow")


def test_a_program_that_could_not_be_started_is_not_tried_again() -> None:
    replay = Replay(restart_max=3, judge="exit")
    replay.begin()
    replay.at(1, failed("worker:1", code=None))
    assert replay.states()["worker:1"] == "failed"


def test_what_an_earlier_attempt_still_tells_is_ignored() -> None:
    replay = Replay()
    replay.up()
    replay.at(1, failed("worker:1"))
    replay.at(2, Tick(), started("worker:1", attempt=1, pid=8))
    assert replay.at(3, failed("worker:1", 0), advanced("worker:1", 99, 0), started("worker:1", 0, pid=1)) == []
    task = replay.run.tasks["worker:1"]
    assert (task.state, task.pid, task.progress) == ("starting", 8, {})


def test_an_exit_that_is_told_twice_counts_once() -> None:
    replay = Replay(restart_max=1)
    replay.up()
    replay.at(1, failed("worker:1"))
    assert replay.at(1.5, failed("worker:1")) == []
    assert replay.at(2) == [Start("worker:1", 1)]


def test_a_restarted_task_shows_nothing_of_the_attempt_before() -> None:
    replay = Replay()
    replay.up()
    replay.at(1, advanced("worker:1", step=40))
    replay.at(2, failed("worker:1", code=3))
    shown = replay.run.tasks["worker:1"].status()
    assert (shown.exit_code, shown.cause) == (3, "it broke")
    replay.at(3)
    shown = replay.run.tasks["worker:1"].status()
    assert (shown.state, shown.restarts) == ("starting", 1)
    assert (shown.pid, shown.exit_code, shown.cause, shown.step) == (None, None, None, None)


def test_a_ps_that_leaves_before_the_end_is_a_failure_too() -> None:
    replay = Replay()
    replay.up()
    replay.at(1, left("ps:0"))
    assert replay.states()["ps:0"] == "restarting"


# -- a restart that the operator wants


def test_a_restart_ends_the_attempt_and_begins_the_next_at_once() -> None:
    replay = Replay(restart_max=0)
    replay.up()
    assert replay.at(5, RestartRequested(["worker:1"])) == [Stop("worker:1", 10.0, 0)]
    assert replay.at(6, left("worker:1", code=-15)) == [Start("worker:1", 1)]
    assert replay.states()["worker:1"] == "starting" and replay.run.state.label == "running"
    replay.at(7, started("worker:1", 1), advanced("worker:1", attempt=1))
    assert replay.at(8, RestartRequested(["worker:1"])) == [Stop("worker:1", 10.0, 1)]


def test_a_task_is_recalled_once_however_often_it_is_asked_for() -> None:
    replay = Replay()
    replay.up()
    assert len(replay.at(5, RestartRequested(["worker:1", "ps:0"]))) == 2
    assert replay.at(6, RestartRequested(["worker:1"])) == []


def test_a_restart_does_not_count_against_restart_max_and_failures_still_do() -> None:
    replay = Replay(restart_max=1, backoff_s=2.0)
    replay.up()
    replay.at(1, RestartRequested(["worker:1"]), left("worker:1", code=-15))
    replay.at(2, started("worker:1", 1), failed("worker:1", attempt=1))
    assert replay.states()["worker:1"] == "restarting"
    assert replay.at(3.9) == [] and replay.at(4) == [Start("worker:1", 2)]
    replay.at(5, failed("worker:1", attempt=2))
    assert replay.run.state.cause == "worker:1@b (attempt 2 of 2): it broke"


def test_a_task_that_waits_for_its_next_attempt_need_not_wait_any_longer() -> None:
    replay = Replay(backoff_s=60.0)
    replay.up()
    replay.at(1, failed("worker:1"))
    assert replay.at(2, RestartRequested(["worker:1"])) == [Start("worker:1", 1)]


def test_a_task_that_was_recalled_and_hangs_is_not_started_beside_itself() -> None:
    replay = Replay()
    replay.up()
    replay.at(5, RestartRequested(["worker:1"]))
    replay.at(16, failed("worker:1", code=None))
    assert (replay.run.state.result, replay.states()["worker:1"]) == ("failed", "failed")


def test_a_foreign_program_that_was_recalled_has_not_succeeded_though_it_left_with_code_0() -> None:
    replay = Replay("worker:0@a", judge="exit")
    replay.begin()
    replay.at(1, started("worker:0"), RestartRequested(["worker:0"]))
    assert replay.at(2, left("worker:0")) == [Start("worker:0", 1)]


def test_a_task_that_succeeds_while_it_is_recalled_has_succeeded() -> None:
    replay = Replay()
    replay.up()
    replay.at(1, RestartRequested(["worker:0"]))
    replay.at(2, succeeded("worker:0"))
    assert replay.states()["worker:0"] == "succeeded" and replay.run.state.result == "succeeded"


def test_while_a_run_ends_nothing_is_started_anew() -> None:
    replay = Replay()
    replay.up()
    replay.at(1, StopRequested("enough"))
    assert replay.at(2, RestartRequested(["worker:1", "ps:0"])) == []


def test_an_evaluator_that_failed_for_good_can_be_started_again() -> None:
    replay = with_evaluator()
    replay.at(1, failed("evaluator:0", retry=False))
    assert replay.at(2, RestartRequested(["evaluator:0"])) == [Start("evaluator:0", 1)]
