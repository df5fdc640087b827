"""Runs that a launcher continues on other hosts, because it has lost the chief's host."""

from typing import List

import pytest

from tests.simulation.faults import Fault
from tests.simulation.launcher.test_launcher import lived, shown
from tests.simulation.launcher.test_resumes import resumed_from
from tests.simulation.verdict import failure
from tests.simulation.world import World

SEED = 2500003  # a run on three hosts, of which two have copies; its launcher gives up a host after a second
FIVE, TWO = 2500005, 2500004  # such runs on five hosts, with two copies, and on two
END = Fault(110.0, "ctrl-c")


def successors(world: World) -> List[str]:
    """The lines that begin another run."""
    return [line for line in shown(world) if line.startswith("continuing without ")]


@pytest.mark.parametrize("kind", ["gone", "cut", "line in"])
def test_a_run_goes_on_on_the_other_hosts_when_the_chiefs_host_is_lost(kind: str) -> None:
    world = lived(SEED, Fault(40.0, kind, "h0", 50.0), END)
    assert successors(world) == ["continuing without h0, from the newest copy of the checkpoints, with the chief on h1"]
    assert world.lead_host == "h1" and set(world.plan.hosts) == {"h1", "h2"}
    assert world.training.began_with is not None and world.training.step > world.training.began_with + 50
    assert len(resumed_from(world)) == 1 and shown(world)[-1] == f"{world.run_name} stopped: SIGINT to launch up"


@pytest.mark.parametrize("everywhere", [Fault(70.0, "kill", "h0"), Fault(70.0, "slow", "h0", 120.0)], ids=str)
def test_what_ends_the_run_or_slows_the_network_reaches_the_successor_too(everywhere: Fault) -> None:
    """Found by seed 3019191: the operator's end was left out, since its drawn host had no part in the successor."""
    world = lived(SEED, Fault(40.0, "gone", "h0"), everywhere)
    assert successors(world) and world.lead_host == "h1" and world.operators.up.code == 1
    assert shown(world)[-1].startswith(f"{world.run_name} stopped: ")


def test_the_chiefs_host_wakes_beside_the_successor() -> None:
    """Found by this history: beats of before the suspension renewed the lease of the lead that woke."""
    world = lived(SEED, Fault(40.0, "sleep", "h0", 30.0), END)
    status = world.machines["h0"].folder.read_whole("status.json") or {}
    assert successors(world) and "its lease on the run ended" in status["cause"]


@pytest.mark.parametrize("stopped_at, seconds", [(27.0, 3.0), (28.5, 30.0), (29.1, 30.0)])
def test_a_lead_that_is_stopped_as_it_wakes_has_its_tasks_ended_before_long(stopped_at: float, seconds: float) -> None:
    """Found by seed 3057156: its keeper waited 9 s for it, while the successor trained.

    After a later stop, I1 left the keeper no time: it waits up to 2 s, so that a busy machine loses no healthy agent.
    """
    world = World(3057156, [Fault(6.0, "sleep", "h0", 20.0), Fault(stopped_at, "stopped", "h0", seconds)])
    assert failure(world) is None and len(successors(world)) == 1


@pytest.mark.parametrize(
    "seed, faults",
    [
        (3066288, [Fault(3.0, "agent", "h2"), Fault(7.0, "cut", "h2", 26.0), Fault(10.0, "sleep", "h0", 26.3),
                   Fault(33.9, "kill", "h0")]),
        (3080790, [Fault(30.0, "line in", "h0", 30.0), Fault(30.0, "stubborn", "worker:0"), Fault(54.0, "ctrl-c")]),
        (3067830, [Fault(10.0, "cut out", "h0", 20.0), Fault(13.0, "keeper stopped", "h0", 16.0),
                   Fault(20.0, "stopped", "h0", 30.0)]),
    ],
)  # fmt: skip
def test_a_successor_ends_beside_tasks_of_the_run_before(seed: int, faults: List[Fault]) -> None:
    """I6 took them for the successor's own, and I1 had forgotten that their host had nobody to end them."""
    world = World(seed, faults)
    assert failure(world) is None and len(successors(world)) == 1


def test_a_worker_that_the_lead_starts_as_it_wakes_is_not_one_of_the_successors() -> None:
    """Found by seed 3078825: I3 took the workers of the successor for former ones of the lead's own run."""
    world = World(3078825, [Fault(5.0, "crash", "worker:0"), Fault(5.13, "sleep", "h0", 30.0)])
    assert failure(world) is None and len(successors(world)) == 1


def test_a_lead_that_is_stopped_and_has_no_keeper_to_kill_it_is_lost() -> None:
    """Found by a dense history: its agent "ended" while it was there, and the run failed."""
    world = lived(SEED, Fault(20.0, "keeper", "h0"), Fault(40.0, "stopped", "h0", 1000.0), END)
    assert [line.partition(", from")[0] for line in successors(world)] == ["continuing without h0"]
    assert world.operators.up.code == 130 and world.training.step > 120


def test_a_restarted_lead_that_the_launcher_could_not_reach_begins_nothing_beside_the_successor() -> None:
    """Found by a dense history: the host had the request to start it, and the launcher never had the answer."""
    unanswered = Fault(48.0, "cut out", "h0", 33.0), Fault(56.0, "reset", "h0")
    world = lived(SEED, Fault(38.0, "keeper stopped", "h0", 30.0), Fault(40.0, "agent", "h0"), *unanswered, END)
    begun = [entry.at for entry in world.history if entry.text == "the next agent begins"]
    starts = [entry.at for entry in world.history if entry.host == "h0" and entry.text.startswith("starts ")]
    assert begun and max(starts) < begun[0] and len(successors(world)) == 1 and world.lead_host == "h1"


def test_a_successor_has_a_successor_and_leaves_out_what_is_out_of_reach() -> None:
    world = lived(FIVE, Fault(30.0, "cut", "h3", 40.0), Fault(31.0, "gone", "h0"), Fault(80.0, "gone", "h1"), END)
    assert [line.partition(", from")[0] for line in successors(world)] == [
        "continuing without h[0,3]",
        "continuing without h1",
    ]
    assert world.lead_host == "h2" and world.operators.up.code == 130 and world.training.step > 50


def test_a_run_ends_whose_hosts_are_too_few() -> None:
    world = lived(TWO, Fault(40.0, "gone", "h0"), Fault(41.0, "gone", "h1"))
    assert not successors(world) and world.operators.up.code == 1
    assert any("h1: no answer within" in line for line in shown(world))


def test_a_successor_that_no_host_can_begin_leaves_the_run_as_it_was() -> None:
    """Found by seed 3017997: what launch up said of the successor was looked for in the run before."""
    world = lived(TWO, Fault(40.0, "gone", "h0"), Fault(58.0, "disk", "h1", 30.0))
    assert successors(world) and world.lead_host == "h0" and world.operators.up.code == 3
    assert len(resumed_from(world)) == 1 and world.training.began_with == 0
    assert any("h1: cannot make the run's folder" in line for line in shown(world))


def test_ctrl_c_while_the_lost_lead_may_have_its_lease_begins_no_successor() -> None:
    world = lived(SEED, Fault(40.0, "gone", "h0"), Fault(58.0, "ctrl-c"))
    assert successors(world) and world.lead_host == "h0" and world.operators.up.code == 130
    assert world.agenda.now < 60.0


def test_a_launch_down_of_another_terminal_prevents_the_successor() -> None:
    world = lived(SEED, Fault(40.0, "gone", "h0"), Fault(58.0, "another down"))
    assert successors(world) and world.lead_host == "h0" and world.operators.up.code == 1
    refusal = f"{world.run_name} was ended here by launch down, so no run succeeds it"
    assert [host for host in ("h1", "h2") if any(f"{host}: {refusal}" in line for line in shown(world))]
    assert not any(machine.has_agent for machine in world.machines.values())


def test_a_launch_down_that_reaches_one_host_prevents_the_successor_on_all() -> None:
    """Another host, which it did not reach, begins an agent; that one ends with the refusal."""
    down = Fault(29.0, "stop", "h2")
    world = lived(3001446, Fault(25.0, "gone", "h0"), Fault(29.0, "cut out", "h1", 10.0), down)
    assert successors(world) and world.lead_host == "h1" and world.operators.up.code == 1
    assert "h2: r-20260101-000000 was ended here by the operator, so no run succeeds it" in shown(world)
    assert not world.training.processes and not any(machine.has_agent for machine in world.machines.values())


def test_a_launch_down_whose_first_look_breaks_on_every_host_prevents_the_successor() -> None:
    breaks = [Fault(59.0005, "reset", host) for host in ("h1", "h2")]
    world = lived(SEED, Fault(40.0, "gone", "h0"), Fault(58.0, "another down"), *breaks)
    assert successors(world) and world.lead_host == "h0" and world.operators.up.code == 1
    assert any(line.endswith("was ended here by launch down, so no run succeeds it") for line in shown(world))


def test_a_lead_that_wakes_beside_its_successor_may_start_a_task_before_it_looks_at_its_clocks() -> None:
    """Seed 3033462: that start has the name and the attempt of one in the successor's run."""
    world = World(3033462, [Fault(20.0, "sleep", "h0", 30.0), Fault(43.0, "crash", "worker:0", 0.0)])
    assert failure(world) is None
    started = [each for each in world.training.processes if (each.task, each.attempt) == ("worker:0", 1)]
    assert {each.host for each in started} == {"h0", "h1"}
