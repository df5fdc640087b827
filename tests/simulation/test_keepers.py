"""Simulated keepers decide with the product's code, and keep their promises when they or their agents meet faults."""

from typing import List

import pytest

from launch.agent.service.keeping import CHANCE_S, LEAST_S, LOOK_S
from launch.agent.supervision.agent_lives import MOST
from tests.simulation import keeper_faults
from tests.simulation.faults import Fault
from tests.simulation.operators import further_faults
from tests.simulation.runs import FURTHER_FROM
from tests.simulation.verdict import failure
from tests.simulation.world import World

DETACHED = 30181  # an elastic run of five hosts, which its launcher leaves
ELASTIC = 2498  # of four hosts, attached
KILLED, BEGINS = "the agent is killed", "the next agent begins"


def happened(*faults: Fault, seed: int = DETACHED, until: float = 0.0) -> World:
    """The world after these faults, stopped at a time unless that is 0; every promise was kept."""
    world = World(seed, [*faults, *[Fault(until, "stop")] * bool(until)])
    assert failure(world) is None
    return world


def when(world: World, text: str, host: str = "h3") -> List[float]:
    """The times at which something happened on a host."""
    return [entry.at for entry in world.history if entry.host == host and entry.text == text]


def test_a_stopped_agent_is_killed_when_the_patience_of_its_last_beat_is_over() -> None:
    (at,) = when(happened(Fault(60.2, "stopped", "h3", 60.0), until=90.0), KILLED)
    assert 60.2 + LEAST_S + CHANCE_S - 0.6 < at < 60.2 + LEAST_S + CHANCE_S


def test_an_agent_that_is_stopped_for_seconds_beats_again_and_lives() -> None:
    assert when(happened(Fault(60.0, "stopped", "h3", 6.0), until=90.0), KILLED) == []


def test_a_stopped_agent_on_a_machine_that_was_suspended_is_killed_soon_after_that_wakes() -> None:
    world = happened(Fault(60.0, "stopped", "h2", 60.0), Fault(61.0, "sleep", "h2", 20.0), seed=ELASTIC, until=100.0)
    (woken,), (killed,) = when(world, "wakes", "h2"), when(world, KILLED, "h2")
    assert killed - woken <= LOOK_S + CHANCE_S


def test_nobody_begins_an_agent_whose_keeper_was_killed_and_the_run_goes_on_without_its_host() -> None:
    world = happened(Fault(60.0, "keeper", "h3"), Fault(80.0, "agent", "h3"), until=130.0)
    assert when(world, BEGINS) == [] and world.training.step > 0 and world.machines["h3"].life is None


def test_an_agent_whose_keeper_was_killed_works_on() -> None:
    world = happened(Fault(60.0, "keeper", "h3"), until=90.0)
    assert [at > 90.0 for at in when(world, "the agent leaves")] == [True]


def test_a_keeper_that_was_stopped_begins_the_next_agent_when_it_goes_on() -> None:
    world = happened(Fault(60.0, "keeper stopped", "h3", 30.0), Fault(65.0, "agent", "h3"), until=110.0)
    (at,) = when(world, BEGINS)
    assert 90.0 < at < 92.0


def test_an_agent_that_was_stopped_together_with_its_keeper_is_not_killed() -> None:
    """As when a debugger, or a cgroup, stops both: the keeper gives it a second."""
    both = [Fault(60.0, "stopped", "h3", 20.0), Fault(60.0, "keeper stopped", "h3", 20.0)]
    assert when(happened(*both, until=110.0), KILLED) == []


def test_a_keeper_without_memory_tries_again() -> None:
    world = happened(Fault(60.0, "memory", "h3", 5.0), Fault(60.1, "agent", "h3"), until=110.0)
    assert len(when(world, "no agent begins for want of memory")) == 2 and len(when(world, BEGINS)) == 1


@pytest.mark.parametrize("kind", ["refused", "taken"])
def test_a_keeper_gives_an_agent_up_that_cannot_begin(kind: str) -> None:
    world = happened(Fault(60.0, kind, "h3", 120.0), Fault(60.1, "agent", "h3"), until=200.0)
    tries = [entry for entry in world.history if entry.host == "h3" and entry.text.startswith("the next agent ends: ")]
    assert len(tries) == MOST and when(world, BEGINS) == []


def test_an_agent_that_fails_by_itself_has_a_next_one() -> None:
    assert len(when(happened(Fault(60.0, "exit", "h3"), until=90.0), BEGINS)) == 1


def test_an_agent_that_begins_beside_another_leaves_that_alone() -> None:
    world = happened(Fault(60.0, "rival", "h3"), until=90.0)
    assert when(world, KILLED) == [] == when(world, "the keeper is killed")


def test_an_agent_that_tidies_for_long_is_not_killed_and_has_no_next_one() -> None:
    world = happened(Fault(55.0, "tidy", "h3", 30.0), until=60.0)
    assert when(world, KILLED) == [] == when(world, BEGINS) and len(when(world, "the agent leaves")) == 1


def test_an_agent_that_fails_while_it_tidies_has_a_next_one_which_leaves() -> None:
    world = happened(Fault(55.0, "tidy", "h3", 30.0), Fault(70.0, "exit", "h3"), until=60.0)
    assert len(when(world, BEGINS)) == 1 and len(when(world, "the agent fails")) == 1
    assert not any(machine.has_agent for machine in world.machines.values())


@pytest.mark.parametrize("at", [16.57, 16.6])  # within the last sweep, on 3.13 and on 3.7
def test_an_agent_that_is_stopped_before_it_has_closed_its_pulse_is_killed_as_a_frozen_one(at: float) -> None:
    """Found by seed 3069082: I15 had it as over while its last sweep blocked, before the last byte of its pulse."""
    world = World(3069082, [Fault(2.0, "laptop off"), Fault(at, "stopped", "h0", 10.0)])
    assert failure(world) is None and when(world, BEGINS, "h0") == []


def test_a_boot_begins_no_agent_beside_one_that_a_launcher_has_restarted() -> None:
    """Found by seed 3091132: the world did, where that agent's keeper had been killed."""
    world = World(3091132, [Fault(3.0, "write unpowered", "h2"), Fault(30.0, "keeper", "h2")])
    assert failure(world) is None


def test_only_histories_from_a_seed_on_draw_faults_of_keepers() -> None:
    hosts, seeds = ["h0", "h1"], range(FURTHER_FROM, FURTHER_FROM + 200)
    assert not any(further_faults(seed, hosts, 480.0) for seed in (0, 30181, FURTHER_FROM - 1))
    some = [fault for seed in seeds for fault in keeper_faults.drawn(seed, hosts, 480.0)]
    assert {kind for _, kind, _, _ in some} >= {*keeper_faults.KINDS, *keeper_faults.ENDS}
