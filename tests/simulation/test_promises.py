"""Each promise is broken by a product that does not keep it: none of them holds by itself."""

from typing import Any, Callable, List

import pytest

from launch.agent.service.member import Member
from launch.agent.supervision.ending import PS, Ending
from launch.agent.supervision.incidents import Incidents
from launch.agent.supervision.restart_policy import Restarts
from launch.agent.supervision.stall import Stalls
from tests.simulation.faults import Fault
from tests.simulation.promises import Promises
from tests.simulation.verdict import failure
from tests.simulation.world import World

PLAIN = 3  # a run of several hosts; its faults are not used here
DETACHED = 50  # an elastic one of five hosts, which its launcher leaves
Replace = Callable[[Any, str, Any], None]


def broken(seed: int, *faults: Fault) -> str:
    return failure(World(seed, list(faults))) or ""


def test_two_processes_of_a_task() -> None:
    world = World(PLAIN, [])
    world.agenda.add(60.0, lambda: world.new_life_of("worker:0", "h1"))
    assert (failure(world) or "").startswith("I1: 2 processes of one task: worker:0 attempt 0 on h0, ")


def test_a_process_that_starts_beside_its_former_one() -> None:
    world = World(PLAIN, [])
    world.agenda.add(60.0, lambda: world.new_life_of("worker:0", "h0"))
    assert (failure(world) or "").startswith("I3: worker:0 starts on h0 while worker:0 attempt 0 on h0 lives")


def test_tasks_that_outlive_their_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    async def keeps(self: Member) -> None:
        self._serves = ""

    monkeypatch.setattr(Member, "_forget_lead", keeps)
    monkeypatch.setattr(Promises, "_one_process_of_each_task", lambda self: None)
    monkeypatch.setattr(Promises, "starts", lambda self, process: None)
    assert broken(DETACHED, Fault(100.0, "agent", "h0")).startswith("I4: 2 leads on one host: ")


def test_steps_that_are_lost_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    fall = Stalls._fall

    def twice(self: Stalls, *args: Any) -> None:
        before = self.steps_lost
        fall(self, *args)
        self.steps_lost += self.steps_lost - before

    monkeypatch.setattr(Stalls, "_fall", twice)
    assert broken(DETACHED, Fault(100.0, "crash", "ps:0")).startswith("I5: ")


def test_servers_that_end_before_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ending, "_due", lambda self, processes, now: PS)
    assert broken(PLAIN, Fault(100.0, "stop")).startswith("I6: ps:0 is ended while worker:0")


def test_a_run_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(World, "_down", lambda self, request, again: None)
    assert broken(PLAIN, Fault(30.0, "freeze", "worker:0", 1.0)).startswith("I7: ")


def test_steps_that_nobody_counts_as_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stalls, "_fall", lambda self, *args: None)
    assert broken(DETACHED, Fault(100.0, "crash", "ps:0")).startswith("I9: training went back by ")


def test_a_task_that_is_blamed_for_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Incidents.begin

    def blames(self: Incidents, kind: str, now: float, task: Any = None, **more: Any) -> Any:
        return begin(self, "exit", now, "worker:0", cause="exit code 1")

    monkeypatch.setattr(Incidents, "begin", blames)
    assert broken(DETACHED, Fault(100.0, "cut", "h2", 30.0)).startswith("I10: only network and clocks misbehave")


def test_training_that_does_not_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing: List[Any] = []
    monkeypatch.setattr(Restarts, "pop_due", lambda self, now: nothing)
    assert broken(DETACHED, Fault(100.0, "crash", "ps:0")).startswith("I12: ")
