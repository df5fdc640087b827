"""The chief is asked to save before it is ended on purpose, and what it has saved stays known."""

from typing import Any, List

from cluster.protocol.save_request import HOLD, LIVE
from launch.agent.protocol.messages import (
    Advanced,
    KillRequested,
    Order,
    RestartRequested,
    Save,
    Stop,
    StopRequested,
    Tick,
)
from launch.agent.supervision.saving import LIVE_S, SAVE_S, TAKE_S
from tests.support.agent.histories import Replay, advanced, failed, left, started

ASKED: List[Order] = [Save("worker:0", 0, 1, HOLD)]
WORKERS = [Stop("worker:0", 10.0), Stop("worker:1", 10.0)]


def training(**options: Any) -> Replay:
    """Every task trains, at 0; the chief can save."""
    replay = Replay(**options)
    replay.up()
    replay.at(0, advanced("worker:0", 7, save_begun=0, save_done=0))
    return replay


def told(begun: int, done: int, **more: Any) -> Advanced:
    return advanced("worker:0", 8, save_begun=begun, save_done=done, **more)


def test_a_run_that_is_stopped_saves_first_and_the_workers_end_when_it_has() -> None:
    replay = training()
    assert replay.at(1, StopRequested("enough")) == ASKED
    assert replay.at(1 + TAKE_S / 2) == [] and replay.at(2, told(1, 0)) == []
    assert replay.at(3, told(1, 1)) == WORKERS


def test_what_was_not_taken_up_is_not_waited_for_since_a_step_may_never_end() -> None:
    replay = training()
    assert replay.at(1, StopRequested("enough")) == ASKED
    assert replay.at(1 + TAKE_S - 0.1) == [] and replay.at(1 + TAKE_S) == WORKERS


def test_a_chief_whose_steps_are_long_gets_three_of_them_to_see_the_request() -> None:
    replay = training()
    replay.at(0.5, told(0, 0, step_time_ms=2000.0))
    replay.at(1, StopRequested("enough"))
    assert replay.at(1 + TAKE_S + 5.9) == [] and replay.at(1 + TAKE_S + 6) == WORKERS


def test_a_save_that_goes_on_and_on_is_waited_for_only_so_long() -> None:
    replay = training()
    replay.at(1, StopRequested("enough"))
    assert replay.at(2, told(1, 0)) == [] and replay.at(0.9 + SAVE_S) == [] and replay.at(1 + SAVE_S) == WORKERS


def test_a_second_request_to_stop_changes_nothing_and_a_kill_waits_for_nothing() -> None:
    replay = training()
    replay.at(1, StopRequested("enough"))
    assert replay.at(1.1, StopRequested("enough")) == []
    killed = replay.at(1.2, KillRequested("now"))
    assert [order for order in killed if order.grace_s == 0] == [  # type: ignore[union-attr]
        Stop(name, 0.0) for name in ("ps:0", "worker:0", "worker:1")
    ]


def test_when_the_chief_ends_meanwhile_nobody_waits_for_it() -> None:
    replay = training()
    replay.at(1, StopRequested("enough"))
    assert replay.at(1.5, left("worker:0", code=-9)) == [Stop("worker:1", 10.0)]


def test_a_chief_that_does_not_train_is_not_asked() -> None:
    replay = training(backoff_s=60.0)
    replay.at(0.5, failed("worker:0"))
    assert replay.at(1, StopRequested("enough")) == [Stop("worker:1", 10.0)]
    replay = training()
    replay.at(0.5, RestartRequested(["worker:0"]))
    assert replay.at(1, StopRequested("enough"), Tick()) == WORKERS


def test_programs_of_others_are_not_asked() -> None:
    replay = Replay("ps:0@a", "worker:0@a", judge="exit")
    replay.up()
    assert replay.at(1, StopRequested("enough")) == [Stop("worker:0", 10.0)]


def test_each_request_has_a_number_of_its_own_so_that_an_answer_to_an_earlier_one_does_not_count() -> None:
    replay = training()
    assert replay.run.saving.ask(1) == [Save("worker:0", 0, 1)] and replay.run.saving.is_pending(1)
    replay.at(2, told(1, 1))
    assert not replay.run.saving.is_pending(2)
    assert replay.run.saving.ask(3) == [Save("worker:0", 0, 2)] and replay.run.saving.is_pending(3)
    replay.at(4, told(2, 2))
    assert not replay.run.saving.is_pending(4)


def test_a_save_while_training_goes_on_holds_no_end_up() -> None:
    replay = training()
    orders, request = replay.run.saving.ask_live(1)
    assert orders == [Save("worker:0", 0, 1, LIVE)] and request is not None
    assert replay.run.saving.awaits(request, 1) and not replay.run.saving.is_pending(1)
    replay.at(2, told(1, 0))
    assert replay.run.saving.awaits(request, LIVE_S) and not replay.run.saving.awaits(request, 1 + LIVE_S)
    assert replay.at(2, StopRequested("enough")) == [Save("worker:0", 0, 2, HOLD)]
    replay.at(3, told(2, 2))  # which is newer than both
    assert replay.run.saving.is_done(request) and not replay.run.saving.awaits(request, 3)


def test_no_other_save_takes_the_place_of_one_before_an_end() -> None:
    replay = training()
    assert replay.run.saving.ask(1, HOLD) == [Save("worker:0", 0, 1, HOLD)]
    assert replay.run.saving.ask_live(1) == ([], None)
    replay.at(2, told(1, 1))
    assert replay.run.saving.ask_live(2)[0] == [Save("worker:0", 0, 2, LIVE)]


# -- checkpoints that are there


def test_a_checkpoint_is_known_when_the_chief_that_saved_it_has_failed_and_the_next_one_has_said_nothing() -> None:
    replay = training(restart_max=1)
    replay.at(1, advanced("worker:0", 100, checkpoint_step=100, examples=100))
    replay.at(2, failed("worker:0"))
    replay.at(3.5)
    replay.at(4, started("worker:0", 1), failed("worker:0", 1))
    assert (replay.run.state.result, replay.status()["checkpoint_step"]) == ("failed", 100)
