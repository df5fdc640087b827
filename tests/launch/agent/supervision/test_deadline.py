"""A run stops in order at its deadline: replayed histories."""

import pytest

from cluster.protocol.save_request import HOLD
from launch.agent.protocol.messages import End, Go, Joined, Save, Stop
from launch.agent.service.recovery import Earlier, continue_run
from tests.support.agent.histories import Replay, advanced, left, started, step, succeeded


def test_at_its_deadline_the_chief_saves_and_then_the_tasks_end() -> None:
    replay = Replay(deadline_s=60.0)
    replay.up()
    replay.at(1, advanced("worker:0", 1, save_done=0))
    assert replay.at(59.9) == []
    assert replay.at(60) == [Save("worker:0", 0, 1, HOLD)]
    assert replay.run.state.result == "stopped"
    orders = replay.at(61, advanced("worker:0", 5, save_done=1, checkpoint_step=5))
    assert orders == [Stop("worker:0", 10.0), Stop("worker:1", 10.0)]
    assert replay.at(62, left("worker:0"), left("worker:1")) == [Stop("ps:0", 10.0)]
    assert replay.at(63, left("ps:0", code=-15)) == [End("stopped")]


@pytest.mark.parametrize("seconds", ["86400", "1209600", "0.5"])
def test_the_reason_names_the_key_as_written_and_what_continues_the_run(seconds: str) -> None:
    replay = Replay(deadline_s=float(seconds))
    replay.up()
    replay.at(float(seconds))
    assert replay.run.state.cause == f"deadline_s of {seconds} s has passed; continue with `launch up --resume FILE`"


def test_a_run_that_ends_before_is_as_without_a_deadline() -> None:
    replay = Replay(deadline_s=60.0)
    replay.up()
    step(replay, 1, 100)
    replay.at(59, succeeded("worker:0"))
    replay.at(61)
    assert (replay.run.state.result, replay.run.state.cause) == ("succeeded", None)


def test_a_success_that_is_reported_only_after_the_deadline_counts() -> None:
    replay = Replay(deadline_s=60.0)
    replay.up()
    step(replay, 1, 100)
    replay.at(3600, succeeded("worker:0"))  # the lead's host was suspended
    assert replay.run.state.result == "succeeded"


def test_without_the_key_no_run_is_too_long() -> None:
    replay = Replay()
    replay.up()
    assert replay.at(10.0**9) == []
    assert replay.run.state.result is None


@pytest.mark.parametrize("joined", [True, False])
def test_the_time_counts_from_the_first_event_also_before_any_task_has_started(joined: bool) -> None:
    replay = Replay(deadline_s=60.0, join_s=1000.0)
    replay.at(5, Joined("a"))
    if joined:
        replay.at(5, Joined("b"), Go())
        for name in replay.run.tasks:
            replay.at(5, started(name))
    replay.at(64)
    assert replay.run.state.result is None
    replay.at(65)
    assert replay.run.state.result == "stopped"


def test_the_time_goes_on_over_a_restart_of_the_lead() -> None:
    replay, after = Replay(deadline_s=60.0), Replay(deadline_s=60.0)
    replay.up()
    continue_run(after.run, Earlier(replay.run.status(), ago_s=5.0, lasted_s=50.0), "a", 1000.0)
    after.at(1000.0, Joined("a", "2"), Joined("b", "2"), Go())
    after.at(1004.9)
    assert after.run.state.result is None
    after.at(1005.0)
    assert after.run.state.result == "stopped"
