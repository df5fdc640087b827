"""A sample of simulated histories: no promise is broken, and a seed is the same history each time."""

import re
from pathlib import Path
from typing import List

import pytest

from tests.simulation.faults import Fault
from tests.simulation.replaced import NAMES
from tests.simulation.verdict import failure
from tests.simulation.world import World

ROOT = Path(__file__).resolve().parents[2]
SEEDS = range(10)
WITH_SLEEP = 36  # an elastic run of four hosts
SLEEP = [Fault(244.4, "sleep", "h2", 35.6)]


@pytest.mark.parametrize("seed", SEEDS)
def test_no_promise_is_broken(seed: int) -> None:
    assert failure(World(seed)) is None


def test_a_seed_is_one_history() -> None:
    one, other = World(7), World(7)
    assert failure(one) == failure(other) is None
    assert one.digest == other.digest and len(one.history) > 20


def test_a_run_without_faults_trains_to_its_end() -> None:
    world = World(3, [])
    assert failure(world) is None and world.training.step == world.plan.steps
    assert world.agenda.now < 700


def test_a_host_that_was_suspended_ends_its_tasks_before_it_gets_them_again() -> None:
    """Its silence is as long as the lead's count, which went on: found by a seed."""
    world = World(WITH_SLEEP, SLEEP)
    assert failure(world) is None
    killed = [
        entry.at for entry in world.history if entry.host == "h2" and "no message from the lead for 10 s" in entry.text
    ]
    woken = next(entry.at for entry in world.history if entry.text == "wakes")
    assert killed and killed[0] - woken < 0.5


@pytest.mark.parametrize("after_s", [4.5, 9.5])
def test_an_agent_that_freezes_in_a_silence_is_killed_before_its_host_is_lost(after_s: float) -> None:
    """Its keeper's patience is what is left of the silence, not the whole of it again: found by a double fault."""
    faults = [Fault(100.0, "cut", "h2", 60.0), Fault(100.0 + after_s, "stopped", "h2", 60.0)]
    assert failure(World(WITH_SLEEP, faults)) is None


def test_a_member_that_does_not_count_its_suspension_breaks_a_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that does not count its suspension has a process beside the next formation, by one fault."""
    monkeypatch.setattr(World, "_since_boot", lambda self: self._here().time())
    assert (failure(World(WITH_SLEEP, SLEEP)) or "").startswith("I1: 2 formations: worker:2 attempt 0 on h2, ")


def test_agents_ask_for_nothing_else_of_this_machine() -> None:
    """What lead, members and their links ask of time, secrets and files by name is replaced."""
    modules = [
        *(
            ROOT / "launch/agent/service" / f"{name}.py"
            for name in ("lead", "member", "member_links", "agent", "recovery")
        ),
        *(ROOT / "launch/agent/protocol" / f"{name}.py" for name in ("links", "gate", "sealed", "silence", "messages")),
        *(ROOT / "launch/agent/supervision").glob("*.py"),
        ROOT / "launch/agent/state/report.py",
    ]
    names = {  # of signals by number, of paths, and of a listener's file, which no listener here has
        "launch.agent.supervision.ending.signal", "launch.agent.supervision.incident.signal",
        "launch.agent.supervision.hang_detection.os",
        "launch.agent.protocol.gate.os", "launch.agent.protocol.gate.socket",
    }  # fmt: skip
    assert {each for module in modules for each in _asked(module)} <= {*NAMES, *names}


def _asked(module: Path) -> List[str]:
    name = ".".join(module.relative_to(ROOT).with_suffix("").parts)
    outside = "time|secrets|os|socket|random|subprocess|signal|since_boot|say|say_once|say_seldom"
    return [
        f"{name}.{each}" for each in re.findall(rf"^(?:import|from \S+ import) ({outside})\b", module.read_text(), re.M)
    ]
