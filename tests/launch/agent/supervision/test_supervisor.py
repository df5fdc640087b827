"""What a run does next follows from what happened and when: histories are replayed, nothing is started."""

from dataclasses import replace
from typing import Any, Dict

import pytest

from launch.agent.protocol.messages import (
    End,
    Exited,
    Go,
    Joined,
    KillRequested,
    Lost,
    Measured,
    RestartRequested,
    Signs,
    Start,
    Started,
    Stop,
    StopRequested,
    Tick,
)
from launch.agent.supervision.run_state import Phase
from launch.agent.supervision.task_records import TaskRecord
from tests.support.agent.histories import DONE, Replay, advanced, failed, in_words, left, started, succeeded

# -- the beginning


def test_tasks_start_when_every_host_has_joined_and_the_launcher_said_go() -> None:
    replay = Replay()
    assert replay.at(0, Joined("a"), Go(), Tick()) == []
    assert replay.run.state.label == "starting"
    assert replay.at(1, Joined("b")) == [Start("ps:0", 0), Start("worker:0", 0), Start("worker:1", 0)]


def test_without_go_nothing_starts_however_long_the_hosts_wait() -> None:
    replay = Replay()
    assert replay.at(0, Joined("a"), Joined("b")) == []
    assert replay.at(1e6) == []


def test_a_host_that_does_not_join_in_time_after_go_fails_the_run_and_is_named() -> None:
    replay = Replay(control="a:2300", join_s=20.0)
    assert replay.at(100, Joined("a"), Tick()) == []
    assert replay.at(200, Go()) == [] and replay.at(220) == []
    assert replay.at(220.1) == [End("failed")]
    assert replay.run.state.cause == (
        "b: its agent has not reached the lead at a:2300 within 20 s; open this port between the hosts"
    )


def test_a_run_is_running_once_every_task_has_told_of_progress_and_stays_so_through_a_restart() -> None:
    replay = Replay()
    replay.begin()
    replay.at(1, started("ps:0"), advanced("ps:0"), started("worker:0"), advanced("worker:0"), started("worker:1"))
    assert replay.run.state.label == "starting"
    replay.at(2, advanced("worker:1"))
    assert replay.run.state.label == "running"
    replay.at(3, failed("worker:1"))
    assert replay.run.state.label == "running"


def test_a_foreign_program_runs_as_soon_as_its_process_does() -> None:
    replay = Replay("worker:0@a", judge="exit")
    replay.begin()
    replay.at(1, started("worker:0"))
    assert replay.run.state.label == "running"


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


# -- success


def test_a_job_has_succeeded_when_its_chief_says_so_whatever_its_exit_code() -> None:
    replay = Replay()
    replay.up()
    replay.at(1, succeeded("worker:1"))
    assert replay.run.state.result is None
    replay.at(2, succeeded("worker:0", code=-9))
    assert {replay.run.state.result, replay.states()["worker:0"]} == {"succeeded"}


def test_exit_code_0_of_a_chief_without_an_outcome_proves_nothing() -> None:
    replay = Replay(restart_max=0)
    replay.up()
    replay.at(1, left("worker:0"))
    assert replay.run.state.result == "failed"


def test_a_chief_of_its_own_decides_and_not_worker_0() -> None:
    replay = Replay("ps:0@a", "chief:0@a", "worker:0@b")
    replay.up()
    replay.at(1, succeeded("worker:0"))
    assert replay.run.state.result is None
    replay.at(2, succeeded("chief:0"))
    assert replay.run.state.result == "succeeded"


def test_foreign_programs_without_a_chief_have_succeeded_when_every_worker_left_with_code_0() -> None:
    replay = Replay("ps:0@a", "worker:0@a", "worker:1@b", judge="exit")
    replay.begin()
    replay.at(1, left("worker:0"))
    assert replay.run.state.result is None
    assert replay.at(2, left("worker:1")) == [Stop("ps:0", 10.0)]
    assert replay.at(3, left("ps:0", code=-15)) == [End("succeeded")]


def test_the_chief_of_foreign_programs_decides_and_its_workers_get_time_to_leave_by_themselves() -> None:
    replay = Replay("ps:0@a", "chief:0@a", "worker:0@b", judge="exit", leave_s=5.0)
    replay.begin()
    assert replay.at(1, left("chief:0")) == []
    assert replay.run.state.result == "succeeded"
    assert replay.at(3, left("worker:0")) == [Stop("ps:0", 10.0)]
    assert replay.at(4, left("ps:0", code=-15)) == [End("succeeded")]
    assert replay.states() == {"ps:0": "stopped", "chief:0": "succeeded", "worker:0": "succeeded"}


def test_foreign_workers_that_only_serve_are_ended_when_their_time_to_leave_is_over() -> None:
    replay = Replay("ps:0@a", "chief:0@a", "worker:0@b", judge="exit", leave_s=5.0)
    replay.begin()
    replay.at(1, left("chief:0"))
    assert replay.at(5.9) == []
    assert replay.at(6) == [Stop("worker:0", 10.0)]
    assert replay.at(7, left("worker:0", code=-15)) == [Stop("ps:0", 10.0)]
    assert replay.at(8, left("ps:0", code=-15)) == [End("succeeded")]


def test_foreign_workers_that_only_serve_are_ended_at_once_when_they_get_no_time() -> None:
    replay = Replay("ps:0@a", "chief:0@a", "worker:0@b", judge="exit", leave_s=0.0)
    replay.begin()
    assert replay.at(1, left("chief:0")) == [Stop("worker:0", 10.0)]


def test_a_foreign_evaluator_gets_time_for_its_last_checkpoint() -> None:
    replay = Replay("ps:0@a", "worker:0@a", "evaluator:0@a", judge="exit", leave_s=60.0)
    replay.begin()
    assert replay.at(1, left("worker:0")) == []
    assert replay.at(50, left("evaluator:0")) == [Stop("ps:0", 10.0)]
    assert replay.states()["evaluator:0"] == "succeeded"
    assert replay.status()["incidents"] == []


@pytest.mark.parametrize(("leave_s", "at"), [(60.0, 61.0), (0.0, 1.0)])
def test_a_foreign_evaluator_that_is_ended_says_so_and_how_long_it_was_given(leave_s: float, at: float) -> None:
    replay = Replay("ps:0@a", "worker:0@a", "evaluator:0@b", judge="exit", leave_s=leave_s)
    replay.begin()
    replay.at(1, left("worker:0"))
    replay.at(at)
    assert replay.at(at, left("evaluator:0", code=-15)) == [Stop("ps:0", 10.0)]
    cause = f"ended {leave_s:.0f} s after the run had succeeded, before it left by itself; a larger leave_s"
    (told,) = replay.status()["incidents"]
    assert (told["kind"], replay.run.state.result) == ("cut-short", "succeeded")
    assert in_words(told) == f"evaluator:0@b: {cause} gives it more time"
    assert str(replay.run.tasks["evaluator:0"].cause).startswith(cause)


def test_a_foreign_evaluator_that_fails_at_its_last_checkpoint_says_so() -> None:
    replay = Replay("worker:0@a", "evaluator:0@b", judge="exit", leave_s=60.0)
    replay.begin()
    replay.at(1, left("worker:0"))
    assert replay.at(2, left("evaluator:0", code=3)) == [End("succeeded")]
    assert [in_words(told) for told in replay.status()["incidents"]] == [
        "evaluator:0@b left with exit code 3, not back since"
    ]


def test_a_foreign_worker_that_fails_after_the_chief_has_left_changes_nothing() -> None:
    replay = Replay("ps:0@a", "chief:0@a", "worker:0@b", judge="exit")
    replay.begin()
    replay.at(1, left("chief:0"))
    assert replay.at(2, left("worker:0", code=1)) == [Stop("ps:0", 10.0)]
    assert (replay.run.state.result, replay.states()["worker:0"]) == ("succeeded", "stopped")


def test_a_foreign_worker_that_fails_before_the_chief_has_left_is_started_again() -> None:
    replay = Replay("ps:0@a", "chief:0@a", "worker:0@b", judge="exit")
    replay.begin()
    assert replay.at(1, left("worker:0", code=1)) == []
    assert replay.at(2) == [Start("worker:0", 1)]


def test_the_exit_code_of_a_foreign_program_is_what_fails_it() -> None:
    replay = Replay("worker:0@a", judge="exit", restart_max=0)
    replay.begin()
    replay.at(1, left("worker:0", code=3))
    assert replay.run.state.cause == "worker:0@a: exit code 3"


def test_a_foreign_program_that_was_told_to_stop_was_stopped_even_if_it_left_with_code_0() -> None:
    replay = Replay("ps:0@a", "worker:0@a", judge="exit")
    replay.begin()
    replay.at(1, StopRequested("enough"))
    replay.at(2, left("worker:0"))
    assert replay.states()["worker:0"] == "stopped"


# -- the end of a run


def test_after_a_success_tasks_may_leave_by_themselves_and_are_stopped_when_their_time_is_over() -> None:
    replay = Replay()
    replay.up()
    assert replay.at(1, succeeded("worker:0")) == []
    assert replay.at(1 + 9.9) == []
    assert replay.at(1 + 10) == [Stop("worker:1", 10.0)]
    assert replay.at(13, left("worker:1", code=-15)) == [Stop("ps:0", 10.0)]
    assert replay.at(14, left("ps:0", code=-15)) == [End("succeeded")]
    assert replay.states() == {"ps:0": "stopped", "worker:0": "succeeded", "worker:1": "stopped"}


def test_when_all_left_by_themselves_after_a_success_nothing_is_stopped() -> None:
    replay = Replay()
    replay.up()
    assert replay.at(1, succeeded("worker:0"), succeeded("worker:1")) == []
    assert replay.at(2, succeeded("ps:0")) == [End("succeeded")]


def test_a_stopped_run_stops_its_workers_first_and_then_the_ps() -> None:
    replay = Replay(grace_s=3.0)
    replay.up()
    assert replay.at(1, StopRequested("enough")) == [Stop("worker:0", 3.0), Stop("worker:1", 3.0)]
    assert replay.at(2, left("worker:0", code=-15)) == []
    assert replay.at(3, left("worker:1", code=-15)) == [Stop("ps:0", 3.0)]
    assert replay.at(4, left("ps:0", code=-15)) == [End("stopped")]
    assert (replay.run.state.label, replay.run.state.cause) == ("stopped", "enough")


def test_a_chief_and_an_evaluator_are_stopped_with_the_workers() -> None:
    replay = Replay("ps:0@a", "chief:0@a", "evaluator:0@b")
    replay.up()
    assert replay.at(1, StopRequested("enough")) == [Stop("chief:0", 10.0), Stop("evaluator:0", 10.0)]


def test_each_task_is_told_to_stop_once() -> None:
    replay = Replay()
    replay.up()
    assert len(replay.at(1, StopRequested("enough"))) == 2
    assert replay.at(2, StopRequested("again"), Tick()) == []


def test_a_kill_ends_everything_at_once_the_ps_too() -> None:
    replay = Replay()
    replay.up()
    replay.at(1, StopRequested("enough"))
    assert set(replay.at(2, KillRequested("now"))) == {Stop(name, 0.0) for name in ("ps:0", "worker:0", "worker:1")}
    assert replay.run.state.cause == "enough"


def test_a_stop_before_any_task_has_started_ends_the_run_at_once() -> None:
    replay = Replay()
    assert replay.at(0, Joined("a"), StopRequested("enough")) == [End("stopped")]
    assert set(replay.states().values()) == {"stopped"}


def test_a_task_that_waits_for_its_restart_is_stopped_without_an_order() -> None:
    replay = Replay()
    replay.up()
    replay.at(1, failed("worker:1"))
    assert replay.at(1.5, StopRequested("enough")) == [Stop("worker:0", 10.0)]
    assert replay.states()["worker:1"] == "stopped"
    assert Start("worker:1", 1) not in replay.at(5)


def test_a_task_that_succeeds_while_it_is_stopped_has_succeeded_and_the_run_was_stopped() -> None:
    replay = Replay("ps:0@a", "worker:0@a")
    replay.up()
    replay.at(1, StopRequested("enough"))
    replay.at(2, succeeded("worker:0"))
    assert replay.at(3, left("ps:0")) == [End("stopped")]
    assert replay.states()["worker:0"] == "succeeded"


def test_the_first_cause_stands() -> None:
    replay = Replay(restart_max=0)
    replay.up()
    replay.at(1, failed("worker:1"), StopRequested("enough"), Lost("a", 15.0), KillRequested("now"))
    assert (replay.run.state.result, replay.run.state.cause) == ("failed", "worker:1@b: it broke")


# -- lost hosts


def test_a_lost_host_fails_the_run_and_its_tasks_are_lost_not_stopped() -> None:
    replay = Replay()
    replay.up()
    orders = replay.at(20, Lost("b", 15.0))
    assert replay.states()["worker:1"] == "lost"
    assert replay.run.state.cause == "b: no message for 15 s (host down, network cut, or its agent ended)"
    assert replay.run.tasks["worker:1"].cause == replay.run.state.cause
    assert orders == [Stop("worker:0", 10.0)]
    assert replay.at(21, left("worker:0", code=-15)) == [Stop("ps:0", 10.0)]
    assert replay.at(22, left("ps:0", code=-15)) == [End("failed")]


def test_a_host_that_is_lost_while_the_run_is_stopped_is_not_waited_for() -> None:
    replay = Replay()
    replay.up()
    replay.at(1, StopRequested("enough"), left("worker:0", code=-15))
    assert replay.at(2, Lost("b", 15.0)) == [Stop("ps:0", 10.0)]
    assert replay.run.state.cause == "enough"


def test_what_a_lost_host_tells_later_changes_nothing() -> None:
    replay = Replay()
    replay.up()
    replay.at(1, Lost("b", 15.0))
    assert replay.at(2, Joined("b"), Started("worker:1", 0, 9, [], ""), succeeded("worker:1")) == []
    assert replay.states()["worker:1"] == "lost"


# -- what is shown


def test_the_status_is_the_contract_and_few_fields_more() -> None:
    status = set(Replay().status())
    contract = {
        "run", "name", "state", "global_step", "steps", "steps_per_second", "examples_per_second", "loss",
        "checkpoint_step", "tasks",
    }  # fmt: skip
    assert contract <= status
    assert status - contract == {
        "cause", "metrics", "checkpoint", "evaluation", "waiting_share", "incidents", "cause_incident", "lost_steps",
        "lost_seconds", "silent", "formation", "replicas", "started", "ended", "updated",
    }  # fmt: skip


def test_the_status_of_a_task_is_the_contract_and_few_fields_more() -> None:
    task = set(Replay().status()["tasks"][0])
    contract = {
        "role", "index", "host", "address", "gpus", "state", "pid", "exit_code", "restarts", "step", "step_time_ms",
        "log", "cause",
    }  # fmt: skip
    assert contract <= task
    assert task - contract == {
        "dropped_gradients", "wait_ms", "straggler", "bytes_in_per_second", "bytes_out_per_second", "gpu_percent",
        "gpu_memory_bytes", "doing",
    }  # fmt: skip


def test_before_anything_happened_the_summary_claims_nothing() -> None:
    summary = Replay().status()
    assert (summary["state"], summary["steps"], summary["steps_per_second"]) == ("starting", 100, 0.0)
    assert [summary[key] for key in ("global_step", "loss", "checkpoint_step", "cause")] == [None] * 4


def test_the_global_step_is_the_farthest_workers_and_the_loss_the_chiefs() -> None:
    replay = Replay()
    replay.up()
    replay.at(1, advanced("worker:0", 40, loss=0.5, checkpoint_step=20), advanced("worker:1", 42, loss=0.1))
    summary = replay.status()
    assert (summary["global_step"], summary["loss"], summary["checkpoint_step"]) == (42, 0.5, 20)


def test_rates_are_those_of_the_last_seconds_steps_of_the_chief_examples_of_all_workers() -> None:
    replay = Replay()
    replay.up()
    for second in range(1, 31):
        step = second if second <= 15 else 2 * second - 15  # slow at first, then twice as fast
        for task in ("worker:0", "worker:1"):
            replay.at(second, advanced(task, step, examples=64 * step))
    summary = replay.status()
    assert summary["steps_per_second"] == pytest.approx(2.0)
    assert summary["examples_per_second"] == pytest.approx(2.0 * 64 * 2)


def test_a_restarted_worker_begins_to_count_anew() -> None:
    replay = Replay()
    replay.up()
    replay.at(1, advanced("worker:0", 10, examples=1000))
    replay.at(2, failed("worker:0"))
    replay.at(3, Tick(), started("worker:0", 1), advanced("worker:0", 10, attempt=1, examples=0))
    replay.at(4, advanced("worker:0", 11, attempt=1, examples=64))
    assert replay.status()["steps_per_second"] == pytest.approx(1.0)
    assert replay.status()["examples_per_second"] == pytest.approx(64.0)


def test_what_a_task_uses_of_its_host_is_shown_while_that_attempt_lives() -> None:
    replay = Replay()
    replay.up()
    replay.at(1, Measured({"worker:1": {"attempt": 0, "bytes_in_per_second": 7, "gpu_percent": 80.0}}))
    shown = replay.run.tasks["worker:1"].status()
    assert (shown.bytes_in_per_second, shown.bytes_out_per_second, shown.gpu_percent) == (7, None, 80.0)
    replay.at(2, failed("worker:1"))
    assert replay.run.tasks["worker:1"].status().gpu_percent is None
    replay.at(3, Tick(), Measured({"worker:1": {"attempt": 0, "gpu_percent": 81.0}}))
    assert replay.run.tasks["worker:1"].status().gpu_percent is None


def test_a_ps_has_no_steps_of_its_own() -> None:
    replay = Replay()
    replay.up()
    replay.at(1, advanced("ps:0", 0))
    assert replay.run.tasks["ps:0"].status().step is None


def test_after_a_success_the_outcome_of_the_chief_is_what_is_shown() -> None:
    replay = Replay("ps:0@a", "worker:0@a")
    replay.up()
    replay.at(1, advanced("worker:0", 90, loss=0.5))
    replay.at(2, succeeded("worker:0"), succeeded("ps:0"))
    summary = replay.status()
    assert (summary["state"], summary["global_step"], summary["checkpoint_step"]) == ("succeeded", 100, 100)
    assert (summary["metrics"], summary["checkpoint"]) == (DONE["metrics"], DONE["checkpoint"])


# -- the evaluator


def with_evaluator() -> Replay:
    replay = Replay("ps:0@a", "worker:0@a", "evaluator:0@a")
    replay.up()
    return replay


def test_what_the_evaluator_told_last_is_in_the_status() -> None:
    replay = with_evaluator()
    assert replay.status()["evaluation"] is None
    replay.at(1, advanced("evaluator:0", 3, metrics={"accuracy": 0.9}))
    assert replay.status()["evaluation"] == {"step": 3, "accuracy": 0.9}


def test_an_evaluator_that_fails_for_good_leaves_training_alone() -> None:
    replay = with_evaluator()
    assert replay.at(1, failed("evaluator:0", retry=False)) == []
    assert replay.states()["evaluator:0"] == "failed" and replay.run.state.phase is Phase.TRAINING


def test_the_evaluator_is_told_at_once_and_has_the_time_of_the_others_to_end_what_it_measures() -> None:
    replay = Replay("ps:0@a", "worker:0@a", "evaluator:0@a", leave_s=60.0)
    replay.up()
    assert replay.at(1, succeeded("worker:0")) == [Stop("evaluator:0", 60.0)]
    assert replay.at(40, succeeded("evaluator:0"), succeeded("ps:0")) == [End("succeeded")]
    assert replay.status()["incidents"] == []


def test_an_evaluator_that_does_not_end_in_its_time_says_so_and_what_it_had_measured() -> None:
    replay = with_evaluator()
    replay.at(0.5, advanced("evaluator:0", 90, metrics={"accuracy": 0.9}))
    assert replay.at(1, succeeded("worker:0")) == [Stop("evaluator:0", 10.0)]
    replay.at(11, Exited("evaluator:0", 0, -9, "killed by SIGKILL"))
    assert [in_words(told) for told in replay.status()["incidents"]] == [
        "evaluator:0@a: ended 10 s after the run had succeeded, before it left by itself (it had measured step 90);"
        " a larger leave_s gives it more time"
    ]


def test_an_evaluator_that_ends_what_it_measures_because_it_is_to_begin_again_does_begin_again() -> None:
    replay = with_evaluator()
    assert replay.at(1, RestartRequested(["evaluator:0"])) == [Stop("evaluator:0", 10.0)]
    assert replay.at(2, succeeded("evaluator:0")) == [Start("evaluator:0", 1)]


def test_an_evaluator_that_was_at_no_measurement_ends_at_once_and_is_not_cut_short() -> None:
    replay = with_evaluator()
    replay.at(1, succeeded("worker:0"), Exited("evaluator:0", 0, -15, "killed by SIGTERM"))
    assert (replay.status()["incidents"], replay.states()["evaluator:0"]) == ([], "stopped")


def test_an_evaluator_that_ends_with_a_run_that_was_stopped_is_not_cut_short() -> None:
    replay = with_evaluator()
    replay.at(1, StopRequested("enough"), Exited("evaluator:0", 0, -15, "killed by SIGTERM"))
    assert replay.status()["incidents"] == []


# -- thousands of tasks


class Walked(Dict[str, TaskRecord]):
    """Tasks that count how often somebody looks at all of them."""

    walks = 0

    def values(self) -> Any:
        self.walks += 1
        return super().values()


@pytest.mark.parametrize("judge", ["outcome", "exit"])
def test_what_an_event_costs_does_not_grow_with_the_number_of_tasks(judge: str) -> None:
    replay = Replay("ps:0@a", *(f"worker:{index}@h{index}" for index in range(300)), judge=judge)
    tasks = replay.run.tasks = Walked(replay.run.tasks)
    replay.up()
    for step in range(5):
        replay.at(step, *(advanced(name, step) for name in tasks))
    replay.at(9, failed("worker:7"), *(advanced(name, 9) for name in tasks))
    replay.at(10, Tick(), started("worker:7", 1), advanced("worker:7", attempt=1))
    replay.at(11, *(succeeded(name, attempt=int(name == "worker:7")) for name in tasks if name != "ps:0"))
    replay.at(12, succeeded("ps:0"))
    assert replay.run.state.label == "succeeded"
    assert tasks.walks < 10  # of some two thousand events


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


# -- stragglers


def test_the_status_marks_the_slow_worker_and_tells_what_the_others_lose() -> None:
    replay = Replay()
    replay.begin()
    for second in (1, 2, 3):
        for name, waited_s in (("worker:0", 0.6 * second), ("worker:1", 0.1 * second)):
            replay.at(second, advanced(name, step=10 * second, waited_s=waited_s))
    status = replay.status()
    assert [task["straggler"] for task in status["tasks"]] == [False, False, True]
    assert status["waiting_share"] == 0.5
    assert [task["wait_ms"] for task in status["tasks"]] == [None, 60.0, 10.0]


def test_the_status_has_what_a_task_does_of_its_start_until_it_runs() -> None:
    def doing(replay: Replay) -> Any:
        return [task["doing"] for task in replay.status()["tasks"]]

    def sign(attempt: int, what: str) -> Signs:
        return Signs({"worker:1": {"attempt": attempt, "state": "S", "stopped_s": 0.0, "silent_s": 0.0, "doing": what}})

    replay = Replay()
    replay.begin()
    replay.at(1.0, started("worker:1"), sign(0, "builds its graph"))
    assert doing(replay) == [None, None, "builds its graph"]
    replay.at(2.0, sign(1, "is of another attempt"))
    assert doing(replay) == [None, None, "builds its graph"]
    replay.at(3.0, advanced("worker:1"))
    assert doing(replay) == [None, None, None]
