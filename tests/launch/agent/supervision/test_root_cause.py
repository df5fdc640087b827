"""What comes first and what only follows, and the cause of a run that fails: replayed histories."""

from launch.agent.protocol.messages import Lost, StopRequested, Tick
from launch.agent.supervision.root_cause import HOST_WINDOW_S, STEADY_S, WINDOW_S
from tests.support.agent.histories import (
    GONE,
    Replay,
    advanced,
    cut,
    ended,
    failed,
    incidents,
    killed,
    kinds,
    started,
    step,
    training,
)


def test_a_connection_that_is_lost_to_a_task_that_has_died_follows_from_its_death() -> None:
    replay = training()
    replay.at(10.5, killed("ps:0"), cut("worker:0"), cut("worker:1", cause="UnavailableError: Socket closed"))
    assert kinds(replay) == [("signal", ["lost-connection", "lost-connection"])]


def test_whoever_is_heard_of_first_the_death_is_the_cause() -> None:
    replay = training()
    replay.at(10.5, cut("worker:0"), cut("worker:1"))
    assert kinds(replay) == [("lost-connection", ["lost-connection"])]
    replay.at(11.0, killed("ps:0"))
    assert kinds(replay) == [("signal", ["lost-connection", "lost-connection"])]
    assert incidents(replay)[0]["number"] == 1


def test_a_death_long_after_a_connection_was_lost_is_not_its_cause() -> None:
    replay = training()
    replay.at(10.5, cut("worker:1"))
    replay.at(10.6 + WINDOW_S, killed("ps:0"))
    assert kinds(replay) == [("lost-connection", []), ("signal", [])]


def test_an_evaluator_that_failed_costs_nobody_its_connection() -> None:
    replay = Replay("ps:0@a", "worker:0@a", "evaluator:0@b", restart_max=0)
    replay.up()
    replay.at(1, failed("evaluator:0"), cut("worker:0"))
    assert kinds(replay) == [("exit", []), ("lost-connection", [])]


def test_what_fails_again_before_it_trains_again_follows_from_the_first_time() -> None:
    replay = training(restart_max=2)
    replay.at(11, ended("worker:1", "exception", "ValueError: first"))
    replay.at(12, Tick(), started("worker:1", 1), ended("worker:1", "exit", "exit code 3", 1, 3))
    replay.at(14, Tick(), started("worker:1", 2), killed("worker:1", 2))
    assert kinds(replay) == [("exception", ["exit", "signal"])]
    assert replay.run.state.cause == (
        "worker:1@b (attempt 1 of 3): ValueError: first; finally: killed by SIGKILL; its last line: step 4"
    )
    assert replay.status()["cause_incident"] == 1


def test_what_fails_again_before_there_is_a_newer_step_follows_from_the_first_time() -> None:
    replay = training(restart_max=9)
    step(replay, 10, 10, "worker:0", checkpoint_step=7)
    for attempt in range(3):
        now = 20.0 * (attempt + 1)
        replay.at(now, killed("ps:0", attempt))
        replay.at(now + 9, Tick(), started("ps:0", attempt + 1), advanced("ps:0", attempt=attempt + 1))
        step(replay, now + 10, 8, "worker:0", checkpoint_step=7, dropped_gradients=attempt)
        replay.at(now + 11, advanced("worker:0", 9, examples=100 + attempt, checkpoint_step=7))
    assert kinds(replay) == [("signal", ["signal", "signal"])] and incidents(replay)[0]["open"]
    step(replay, 90, 11, "worker:0")
    (told,) = incidents(replay)
    assert (told["open"], told["again_s"], told["lost_steps"]) == (False, 50.0, 3)


def test_the_first_cause_is_told_of_a_task_that_gets_on_a_little_each_time_and_then_fails_differently() -> None:
    replay = training(restart_max=1)
    replay.at(11, ended("worker:1", "exception", "ValueError: first"))
    replay.at(12, Tick(), started("worker:1", 1))
    step(replay, 13, 13, "worker:1", attempt=1)
    replay.at(14, killed("worker:1", 1))
    assert kinds(replay) == [("exception", []), ("signal", [])]
    assert str(replay.run.state.cause).startswith("worker:1@b (attempt 1 of 2): ValueError: first; finally: killed by")
    assert replay.status()["cause_incident"] == 1


def test_what_a_task_failed_of_long_ago_is_not_why_it_fails_now() -> None:
    replay = training(restart_max=1)
    replay.at(11, ended("worker:1", "exception", "ValueError: first"))
    replay.at(12, Tick(), started("worker:1", 1))
    step(replay, 13, 13, "worker:1", attempt=1)
    replay.at(14 + STEADY_S, killed("worker:1", 1))
    assert replay.run.state.cause == "worker:1@b (attempt 2 of 2): killed by SIGKILL; its last line: step 4"
    assert replay.status()["cause_incident"] == 2


def test_a_program_that_fails_each_time_soon_after_its_start_is_one_incident() -> None:
    replay = Replay("worker:0@a", judge="exit", restart_max=2)
    replay.begin()
    replay.at(1, started("worker:0"), ended("worker:0", "exit", "exit code 3", code=3))
    replay.at(2, Tick(), started("worker:0", 1))
    assert not incidents(replay)[0]["open"]
    replay.at(8, killed("worker:0", 1))
    assert kinds(replay) == [("exit", ["signal"])] and incidents(replay)[0]["open"]
    replay.at(10, Tick(), started("worker:0", 2))
    replay.at(11, ended("worker:0", "exit", "exit code 4", 2, 4))
    assert replay.run.state.cause == "worker:0@a (attempt 1 of 3): exit code 3; finally: exit code 4"


def test_what_fails_again_after_it_has_trained_again_is_an_incident_of_its_own() -> None:
    replay = training()
    replay.at(11, killed("worker:1"))
    replay.at(12, Tick(), started("worker:1", 1))
    step(replay, 13, 13, "worker:1", attempt=1)
    replay.at(14, killed("worker:1", 1))
    assert kinds(replay) == [("signal", []), ("signal", [])]


# -- the cause of a run that fails


def test_a_run_that_ends_for_a_lost_connection_names_the_death_that_is_told_while_it_ends() -> None:
    replay = training(restart_max=0)
    replay.at(10.5, cut("worker:1"))
    assert replay.run.state.cause == f"worker:1@b: {GONE}"
    replay.at(10.7, killed("ps:0"))
    assert replay.run.state.cause == f"ps:0@a: killed by SIGKILL; its last line: step 4; so worker:1@b failed: {GONE}"
    assert kinds(replay) == [("signal", ["lost-connection"])]
    assert replay.status()["cause_incident"] == 1


def test_a_host_that_turns_out_to_be_lost_is_the_cause_of_the_connection_lost_before() -> None:
    replay = training(restart_max=0)
    replay.at(10.5, cut("worker:0"))
    replay.at(10.5 + HOST_WINDOW_S - 1, Lost("b", 15.0))
    assert str(replay.run.state.cause).startswith(
        "b: no message for 15 s (host down, network cut, or its agent ended); so "
    )


def test_a_task_that_gives_up_for_want_of_one_that_keeps_dying_is_not_the_cause() -> None:
    replay = training(restart_max=1)
    replay.at(11, killed("ps:0"), cut("worker:1"))
    replay.at(12, Tick(), started("ps:0", 1), started("worker:1", 1), cut("worker:1", 1))
    assert replay.run.state.cause == (
        f"ps:0@a: killed by SIGKILL; its last line: step 4; so worker:1@b failed (attempt 2 of 2): {GONE}"
    )


def test_what_dies_because_the_run_ends_it_is_no_cause() -> None:
    replay = training(restart_max=0)
    replay.at(10.5, cut("worker:1"))
    replay.at(11, killed("worker:0"), killed("ps:0"))  # both were told to end
    assert replay.run.state.cause == f"worker:1@b: {GONE}"


def test_a_run_that_was_stopped_has_no_incident_for_its_cause() -> None:
    replay = training()
    replay.at(11, StopRequested("enough"), Lost("b", 15.0))
    assert (replay.run.state.cause, replay.status()["cause_incident"]) == ("enough", None)
