"""A return to a checkpoint, and a lead's agent that ends before its status has all about it: found by seed 3028337."""

from typing import Any, Dict, List, Tuple

import pytest

from launch.agent.supervision.stall import Stalls
from tests.simulation.faults import Fault
from tests.simulation.verdict import failure
from tests.simulation.world import World

SEED, STEPS = 3028337, 150


def world(crashes: float, stops: float) -> World:
    """A ps crashes at step 16, before a checkpoint. The lead's agent stops, and the tasks train on for ten seconds."""
    stopped = [Fault(stops, "stopped", "h0", 30.0), Fault(stops + 0.1, "keeper stopped", "h0", 10.0)]
    return World(SEED, [Fault(crashes, "crash", "ps:0"), *stopped], steps=STEPS)


def told(lived: World) -> Tuple[int, List[int]]:
    """The lost steps by the last status, and those of each incident that has any."""
    status: Dict[str, Any] = lived.lead.folder.read_whole("status.json") or {}
    return status["lost_steps"], [each["lost_steps"] for each in status["incidents"] if each["lost_steps"]]


@pytest.mark.parametrize("stops", [16.3, 16.5], ids=["before it reads the report", "before it publishes"])
def test_a_return_that_no_status_has_and_that_training_has_made_good_is_not_counted(stops: float) -> None:
    lived = world(12.0, stops)
    assert failure(lived) is None
    assert told(lived) == (0, []) and lived.promises.unwritten.steps == lived.training.known_lost == 16


def test_a_return_that_a_status_could_have_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the promise would say nothing of a lead that ends."""
    lived = world(12.0, 17.6)
    assert failure(lived) is None
    assert told(lived) == (16, [16]) and lived.promises.unwritten.steps == 0
    monkeypatch.setattr(Stalls, "_go_back", lambda self, *args: None)
    assert failure(world(12.0, 17.6)) == "I9: training went back by 16 known steps, and 0 are counted as lost"


@pytest.mark.parametrize("crashes, stops", [(11.7, 16.3), (11.7, 16.5), (12.0, 16.7)])
def test_a_loss_that_a_status_has_is_in_an_incident_there(crashes: float, stops: float) -> None:
    """The incident was counted only as its own task trained again, and the lead's agent ended before."""
    lived = world(crashes, stops)
    assert failure(lived) is None
    assert told(lived) == (16, [16])


def test_steps_that_a_chief_passed_over_are_not_counted_where_no_status_has_its_report() -> None:
    """Found by seed 3093113."""
    resumed = [Fault(70.0, "stop"), Fault(80.0, "damaged checkpoint", "h0"), Fault(84.0, "resume")]
    lived = World(3093113, [*resumed, Fault(88.6, "agent", "h0")])
    assert failure(lived) is None and lived.operators.forgotten_steps == lived.training.known_lost == 16
