"""Returns to a checkpoint that not every worker has seen."""

from tests.simulation.faults import Fault
from tests.simulation.verdict import failure
from tests.simulation.world import World

ELASTIC = 475  # whose h1 has a fast clock: its worker's report comes first


def test_a_worker_that_was_away_for_two_returns_and_takes_the_first_newer_step_has_lost_nothing() -> None:
    """Found by seed 3031332: that step was at the top of the second return, and seemed to be from before it."""
    world = World(ELASTIC, [Fault(6.0, "cut", "h1", 15.0), Fault(28.4, "crash", "ps:1")], steps=50)
    assert failure(world) is None
    status = world.lead.folder.read_whole("status.json") or {}
    assert status["lost_steps"] == world.training.known_lost == 19


def test_a_worker_whose_agent_had_stopped_reports_a_step_from_after_a_return_and_the_next_return_counts_once() -> None:
    world = World(
        3033224,
        [Fault(20.0, "stopped", "h1", 10.0), Fault(20.0, "keeper", "h2", 0.0), Fault(20.0, "stopped", "h2", 30.0)],
    )
    assert failure(world) is None


def test_a_return_that_cost_a_worker_nothing_makes_its_next_one_no_longer() -> None:
    """Found by seed 3060936: the worker reported steps beyond the return before another worker reported that."""
    world = World(
        3060936,
        [Fault(2.0, "slow", "h0", 10.0), Fault(28.6, "damaged", "h2"), Fault(30.0, "disk", "h1", 3.1),
         Fault(32.2, "reboot", "h1")],
    )  # fmt: skip
    assert failure(world) is None and world.training.falls == 2
