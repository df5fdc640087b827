"""A run succeeds, or is stopped, and its tasks end in their order: replayed histories."""

from typing import List, Optional

import pytest

from launch.agent.protocol.messages import (
    End,
    Exited,
    Joined,
    KillRequested,
    Lost,
    RestartRequested,
    Start,
    Stop,
    StopRequested,
    Tick,
)
from launch.agent.supervision.ending import means_success
from launch.agent.supervision.run_state import Phase
from tests.support.agent.histories import Replay, advanced, failed, in_words, left, succeeded, with_evaluator


def test_a_task_of_a_job_has_succeeded_when_it_says_so_however_its_process_went_down() -> None:
    assert means_success(succeeded("worker:0", code=-9), "outcome", ordered=True)
    assert not means_success(left("worker:0"), "outcome", ordered=False)
    assert not means_success(failed("worker:0", code=0), "outcome", ordered=False)


def test_a_program_has_succeeded_when_it_leaves_by_itself_with_exit_code_0() -> None:
    assert means_success(left("worker:0"), "exit", ordered=False)
    assert not means_success(left("worker:0", code=1), "exit", ordered=False)
    assert not means_success(left("worker:0"), "exit", ordered=True)


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


PROGRAM = ("ps:0@a", "chief:0@a", "worker:0@a", "worker:1@b", "evaluator:0@a")


@pytest.mark.parametrize(
    ("success", "leave", "tasks"),
    [
        (None, ["chief:0"], PROGRAM),
        ("chief", ["chief:0"], PROGRAM),
        ("chief", ["worker:0"], ("ps:0@a", "worker:0@a", "worker:1@b")),
        ("all", ["chief:0", "worker:0", "worker:1"], PROGRAM),
        ("all", ["worker:0", "worker:1"], ("worker:0@a", "worker:1@b")),
        ("worker:0", ["worker:0"], ("worker:0@a", "worker:1@b")),
        ("worker:1", ["worker:1"], PROGRAM),
    ],
)
def test_the_tasks_that_the_key_success_names_decide(
    success: Optional[str], leave: List[str], tasks: List[str]
) -> None:
    replay = Replay(*tasks, judge="exit", success=success, restart_max=0)
    replay.up()
    for now, name in enumerate(leave, 1):
        assert replay.run.state.result is None
        replay.at(now, left(name))
    assert replay.run.state.result == "succeeded"


def test_a_worker_that_success_does_not_name_still_fails_the_run_and_after_the_success_ends_in_order() -> None:
    replay = Replay("worker:0@a", "worker:1@b", judge="exit", success="worker:0", leave_s=10.0, restart_max=0)
    replay.up()
    replay.at(1, left("worker:0"))
    assert replay.run.state.result == "succeeded"
    assert replay.at(10.9) == []
    assert replay.at(11) == [Stop("worker:1", 10.0)]
    assert replay.at(12, left("worker:1", code=-15)) == [End("succeeded")]
    other = Replay("worker:0@a", "worker:1@b", judge="exit", success="worker:0", restart_max=0)
    other.up()
    other.at(1, left("worker:1", code=1))
    assert other.run.state.result == "failed"


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
    cause = f"stopped {leave_s:.0f} s after the run had succeeded, before it ended by itself; a larger leave_s"
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


# -- the evaluator


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
        "evaluator:0@a: stopped 10 s after the run had succeeded, before it ended by itself (last measured step: 90);"
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
