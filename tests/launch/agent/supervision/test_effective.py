"""Replayed histories: every second of a run is in one part, and only steps that count are effective."""

import random
from typing import Any, Dict

import pytest

from cluster.protocol.typed_json import from_values
from launch.agent.protocol.messages import Go, Joined, Tick
from launch.agent.service.recovery import Earlier, continue_run
from launch.status.run import RunStatus
from tests.support.agent.histories import Replay, advanced, killed, started, step, succeeded, training

ALL = ("worker:0", "worker:1")


def parts(replay: Replay) -> Dict[str, Any]:
    """The parts of the time; their sum is all of it."""
    found = replay.status()["effective"]
    lost = found["start_s"] + found["standing_s"] + found["rolled_back_s"] + found["saving_s"]
    assert found["seconds"] + lost == pytest.approx(found["of_seconds"], abs=0.01)
    return dict(found)


def test_a_run_without_a_pause_loses_its_start_alone() -> None:
    replay = Replay()
    replay.begin()
    for order in ("ps:0", "worker:0", "worker:1"):
        replay.at(0.0, started(order))
    for second in range(20, 121):
        step(replay, second, second - 19)
    found = parts(replay)
    assert (found["start_s"], found["seconds"], found["of_seconds"]) == (20.0, 100.0, 120.0)
    assert found["share"] == pytest.approx(100 / 120, abs=1e-3)


def test_before_the_first_step_all_is_start() -> None:
    replay = Replay()
    replay.begin()
    replay.at(30.0, Tick())
    assert parts(replay) == {
        "share": 0.0, "seconds": 0.0, "of_seconds": 30.0, "start_s": 30.0, "standing_s": 0.0, "rolled_back_s": 0.0,
        "saving_s": 0.0,
    }  # fmt: skip


def test_a_stall_is_lost_but_for_the_usual_time_of_its_steps() -> None:
    replay = training()
    step(replay, 40, 11)
    found = parts(replay)
    assert (found["standing_s"], found["seconds"]) == (29.0, 10.0)


def test_a_stall_counts_while_it_lasts_and_a_step_that_is_usual_does_not() -> None:
    replay = training()
    replay.at(11.0, Tick())
    assert parts(replay)["standing_s"] == 0.0 and parts(replay)["of_seconds"] == 10.0
    replay.at(25.0, Tick())
    found = parts(replay)
    assert (found["standing_s"], found["of_seconds"]) == (15.0, 25.0)


def test_steps_that_training_went_back_behind_are_lost_and_count_when_they_are_taken_again() -> None:
    replay = training()  # at step 10 after 10 s
    before = parts(replay)["seconds"]
    replay.at(10.0, killed("ps:0"))
    replay.at(12.0, Tick(), started("ps:0", 1))
    step(replay, 20, 5, "worker:0", checkpoint_step=4)
    found = parts(replay)
    assert before == 9.0  # the first report is the end of the start
    assert found["rolled_back_s"] == pytest.approx(6.0)  # those of the steps 5 to 10
    assert found["seconds"] == pytest.approx(3.0 + 1.0)  # the steps 2 to 4, and 5 again
    assert found["standing_s"] == pytest.approx(9.0)
    for second in range(21, 27):
        step(replay, second, second - 15)
    assert parts(replay)["seconds"] == pytest.approx(10.0)


def test_the_same_return_that_another_worker_reports_is_lost_once() -> None:
    replay = training()
    step(replay, 20, 5, "worker:0", checkpoint_step=4)
    step(replay, 21, 6, "worker:1")
    assert parts(replay)["rolled_back_s"] == pytest.approx(6.0)


def test_a_second_return_before_training_is_where_it_was_is_lost_too() -> None:
    replay = training()
    step(replay, 20, 3, "worker:0", checkpoint_step=2)
    for second, at in ((21, 4), (22, 5), (23, 6)):
        step(replay, second, at)
    step(replay, 30, 6, "worker:0", checkpoint_step=5)
    assert parts(replay)["rolled_back_s"] == pytest.approx(8.0)  # no step was before that report
    step(replay, 31, 7)
    step(replay, 40, 4, "worker:0", checkpoint_step=3)
    assert parts(replay)["rolled_back_s"] == pytest.approx(8.0 + 4.0)


def test_a_save_of_a_synchronous_run_is_lost_as_a_save() -> None:
    replay = training(steps=None)
    step(replay, 11, 11, waited_s=0.1, saving_s=0.25)
    found = parts(replay)
    assert (found["saving_s"], found["seconds"]) == (0.25, pytest.approx(9.75))


def test_a_long_save_is_no_stall_besides() -> None:
    replay = training()
    step(replay, 31, 11, waited_s=0.1, saving_s=20.0)
    found = parts(replay)
    assert (found["saving_s"], found["standing_s"]) == (20.0, 0.0)
    assert found["seconds"] == pytest.approx(10.0)


def test_while_the_chief_of_an_asynchronous_run_saves_the_others_train() -> None:
    replay = training()
    step(replay, 11, 11, "worker:1")
    step(replay, 11.5, 12, "worker:0", saving_s=1.0)
    assert parts(replay)["saving_s"] == 0.0


def test_the_next_process_of_the_chief_begins_to_count_its_saves_again() -> None:
    replay = training()
    step(replay, 11, 11, waited_s=0.1, saving_s=0.5)
    replay.at(11.5, killed("worker:0"))
    replay.at(13.0, Tick(), started("worker:0", 1))
    replay.at(14.0, advanced("worker:0", 12, 1, examples=1, waited_s=0.0, saving_s=0.25))
    assert parts(replay)["saving_s"] == pytest.approx(0.75)


def test_the_time_after_the_last_step_is_lost() -> None:
    replay = training()
    replay.at(12.0, succeeded("worker:0", step=10))
    replay.at(30.0, Tick())
    found = parts(replay)
    assert (found["standing_s"], found["of_seconds"]) == (20.0, 30.0)


def test_programs_have_no_effective_time() -> None:
    assert Replay(judge="exit", steps=None).status()["effective"] is None


def test_a_lead_that_starts_again_goes_on_counting() -> None:
    replay = training()
    before = from_values(RunStatus, replay.status())
    after = Replay()
    after.at(0.0, *(Joined(host) for host in after.run.plan.hosts))
    for record in after.run.tasks.values():
        record.attempt = 1
    continue_run(after.run, Earlier(before, ago_s=5.0, lasted_s=10.0), "a", 0.0)
    after.at(0.0, Go())
    for task in ("ps:0", "worker:0", "worker:1"):
        after.at(0.0, started(task, 1))
    after.at(15.0, advanced("worker:0", 9, 1, examples=1, checkpoint_step=8))
    found = parts(after)
    assert found["of_seconds"] == pytest.approx(10 + 5 + 15)
    assert found["rolled_back_s"] == pytest.approx(2.0)  # the steps 9 and 10
    assert found["seconds"] == pytest.approx(9 - 2 + 1)


def test_no_history_loses_a_second_or_counts_one_twice() -> None:
    drawn = random.Random(5)
    for _ in range(50):
        replay, now, at, saved, saving = training(), 10.0, 10, 0, 0.0
        for _ in range(40):
            now += drawn.choice([0.5, 1.0, 1.0, 1.0, 12.0])
            back = drawn.random() < 0.1
            at = saved + 1 if back else at + drawn.randint(1, 3)
            if drawn.random() < 0.2:
                saving, saved = saving + drawn.random() * 3, at
            step(replay, now, at, "worker:0", waited_s=0.0, saving_s=saving, checkpoint_step=saved)
            step(replay, now, at, "worker:1")
            found = parts(replay)
            assert found["of_seconds"] < now + 0.01
            assert all(value >= -1e-6 for value in found.values()) and found["share"] <= 1
        step(replay, now + 1, at + 1)
        assert parts(replay)["of_seconds"] == pytest.approx(now + 1, abs=0.01)


def test_many_reports_are_kept_in_bounded_memory_and_a_return_is_still_right() -> None:
    replay = training(steps=None)
    for second in range(11, 5001):
        step(replay, second, second, "worker:0")
    assert len(replay.run.incidents.effective._samples) <= 513
    step(replay, 5001, 2001, "worker:0", checkpoint_step=2000)
    assert parts(replay)["rolled_back_s"] == pytest.approx(3000, rel=0.01)
