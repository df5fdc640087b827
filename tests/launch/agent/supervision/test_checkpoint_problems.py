"""A checkpoint that cannot be written is one incident, and so are those that a restore has passed over."""

from typing import Any, Dict, List

import pytest

from launch.agent.protocol.messages import Tick
from tests.support.agent.histories import Replay, advanced, in_words, incidents, killed, started, training

FULL = "checkpoints cannot be written into /c on gpu01: No space left on device"


def test_a_problem_is_one_incident_of_the_chiefs_host_until_a_checkpoint_is_written() -> None:
    replay = Replay()
    replay.up()
    for now, problem in enumerate([None, FULL, FULL, FULL, None], 1):
        replay.at(now, advanced("worker:0", now, checkpoint_step=now, checkpoint_problem=problem, examples=now))
    (incident,) = incidents(replay)
    assert (incident["kind"], incident["role"], incident["host"]) == ("checkpoint", None, "a")
    assert incident["cause"] == FULL
    assert [each["what"] for each in incident["did"]] == ["a checkpoint of step 5 is written"]
    assert replay.states()["worker:0"] == "running"


def test_a_chief_that_restarts_beside_the_same_full_disk_has_written_no_checkpoint_until_a_newer_one() -> None:
    replay, deeds = Replay(), []
    replay.up()
    for now, (problem, saved) in enumerate([(None, 3), (FULL, 3), (None, 3), (FULL, 3), (None, 9)], 1):
        replay.at(now, advanced("worker:0", 4 + now, checkpoint_step=saved, checkpoint_problem=problem, examples=now))
        deeds.append([each["what"] for incident in incidents(replay) for each in incident["did"]])
    assert deeds == [[], [], [], [], ["a checkpoint of step 9 is written"]] and len(incidents(replay)) == 1


def test_another_problem_is_another_incident_and_training_goes_on_through_both() -> None:
    replay = Replay()
    replay.up()
    for now, problem in enumerate(["one", "two"], 1):
        replay.at(now, advanced("worker:0", now, checkpoint_problem=problem, examples=now))
        replay.at(now + 0.5, advanced("worker:0", now + 1, checkpoint_problem=problem, examples=now + 1))
    assert [incident["cause"] for incident in incidents(replay)] == ["one", "two"]
    assert replay.run.state.label == "running" and not any(incident["open"] for incident in incidents(replay))


PASSED = "unreadable checkpoints on gpu01 were set aside: /c/model-605 (…); continuing from /c/model-120"


def resumed(*steps: int, **more: Any) -> Replay:
    """A run whose chief passed over a checkpoint of step 605 for that of step 120, and reports these steps."""
    replay = Replay(steps=2000)
    replay.up()
    fields = {"passed_over": PASSED, "passed_over_from": 605, "passed_over_to": 120, **more}
    for now, step in enumerate(steps, 1):
        replay.at(now, advanced("worker:0", step, examples=step, **fields))
    return replay


@pytest.mark.parametrize("steps", [[120, 121, 200], [700], [300, 700, 800]])
def test_checkpoints_that_a_resumed_run_passed_over_are_told_and_their_steps_are_lost_once(steps: List[int]) -> None:
    replay = resumed(*steps, checkpoint_step=200)  # reported late: the chief has saved meanwhile
    (incident,) = incidents(replay)
    assert (incident["kind"], incident["cause"]) == ("checkpoint", PASSED)
    assert (incident["lost_steps"], incident["resumed_from"], replay.status()["lost_steps"]) == (485, 120, 485)
    assert not incident["open"]


@pytest.mark.parametrize("at_once", [False, True])
def test_what_a_restore_in_the_middle_of_a_run_passes_over_is_lost_once_with_the_steps_after_it(at_once: bool) -> None:
    """``at_once``: the chief reports that it has joined, before it takes a step."""
    replay = Replay()
    replay.up()
    replay.at(0, advanced("worker:0", 7))
    replay.at(1, advanced("worker:0", 700, examples=700, checkpoint_step=605))
    fields: Dict[str, Any] = {"passed_over": PASSED, "passed_over_from": 605, "passed_over_to": 120}
    if at_once:
        replay.at(2, advanced("worker:0", 120, examples=700, checkpoint_step=120, **fields))
    replay.at(2, advanced("worker:0", 121, examples=701, checkpoint_step=120, **fields))
    assert [each["cause"] for each in incidents(replay)] == [PASSED]
    assert replay.status()["lost_steps"] == 580


def restarted() -> Replay:
    """A run at step 10 whose chief and ps were killed, and have started again."""
    replay = training()
    replay.at(10.5, killed("worker:0"), killed("ps:0"))
    replay.at(11.5, Tick(), started("ps:0", 1), advanced("ps:0", attempt=1), started("worker:0", 1))
    return replay


RESTORED: Dict[str, Any] = {"passed_over": PASSED, "passed_over_from": 7, "passed_over_to": 5}


@pytest.mark.parametrize("problem", [{"checkpoint_problem": FULL}, RESTORED], ids=["unwritten", "unreadable"])
def test_a_problem_is_an_incident_of_its_own_while_that_of_the_chiefs_end_is_open(problem: Dict[str, Any]) -> None:
    """Found by seed 3080237: it was shown as one more failure of the chief that had followed from its end."""
    replay = restarted()
    for now in (14, 15):  # before it takes a step, and with its first one
        replay.at(now, advanced("worker:0", now - 9, 1, now - 14, checkpoint_step=5, **problem))
    ended, _, found = incidents(replay)
    assert (found["kind"], found["host"]) == ("checkpoint", "a") and in_words(found).startswith(f"a: {found['cause']}")
    assert ended["kind"] == "signal" and ended["followed"] == [] and ended["restarted_s"] == 1.0
    replay.at(16, advanced("worker:0", 11, 1, 5))
    assert not any(each["open"] for each in incidents(replay))


def test_a_checkpoint_that_cost_steps_has_them_also_where_another_worker_reports_the_return_first() -> None:
    """It was shown with nothing lost, on a run of a reader's own model."""
    replay = restarted()
    replay.at(14, advanced("worker:1", 6, examples=12, joins=2, joined_step=5))
    replay.at(14.2, advanced("worker:0", 6, 1, 1, checkpoint_step=5, **RESTORED))
    replay.at(20, advanced("worker:0", 11, 1, 6))
    assert [each["lost_steps"] for each in incidents(replay)] == [5, 5, 5] and replay.status()["lost_steps"] == 5
