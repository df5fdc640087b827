"""A checkpoint that cannot be written is an incident: one, however often it is told, with what became of it."""

from typing import Any, Dict, List

from tests.launch.agent.supervision.histories import Replay, advanced

FULL = "checkpoints cannot be written into /c on gpu01: No space left on device"


def incidents(replay: Replay) -> List[Dict[str, Any]]:
    told: List[Dict[str, Any]] = replay.status()["incidents"]
    return told


def test_a_problem_is_one_incident_of_the_chief_until_a_checkpoint_is_written() -> None:
    replay = Replay()
    replay.up()
    for now, problem in enumerate([None, FULL, FULL, FULL, None], 1):
        replay.at(now, advanced("worker:0", now, checkpoint_step=now, checkpoint_problem=problem, examples=now))
    (incident,) = incidents(replay)
    assert (incident["kind"], incident["role"], incident["host"]) == ("checkpoint", "worker", "a")
    assert incident["cause"] == FULL
    assert [each["what"] for each in incident["did"]] == ["a checkpoint of step 5 is written"]
    assert replay.states()["worker:0"] == "running"


def test_another_problem_is_another_incident_and_training_goes_on_through_both() -> None:
    replay = Replay()
    replay.up()
    for now, problem in enumerate(["one", "two"], 1):
        replay.at(now, advanced("worker:0", now, checkpoint_problem=problem, examples=now))
        replay.at(now + 0.5, advanced("worker:0", now + 1, checkpoint_problem=problem, examples=now + 1))
    assert [incident["cause"] for incident in incidents(replay)] == ["one", "two"]
    assert replay.run.state.published == "running" and not any(incident["open"] for incident in incidents(replay))
