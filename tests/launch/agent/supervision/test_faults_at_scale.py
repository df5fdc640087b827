"""What a fault costs the lead of a large run, told by the instructions that run: no busy machine changes them."""

from typing import Dict

import pytest

from launch.agent.supervision.restart_policy import Restarts
from tests.benchmarks import faults
from tests.support.instructions import counted


def cost_of(tasks: int) -> Dict[str, float]:
    """The most instructions that an event of each kind runs, in a run of so many tasks with as many faults."""
    with counted() as instructions:
        costs = faults.simulated(tasks, clock=instructions).costs
    return {kind: max(found) for kind, found in costs.items()}


@pytest.mark.not_fast
def test_an_event_costs_the_same_in_a_run_of_four_times_the_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "SECONDS", 17)
    monkeypatch.setattr(faults, "FAULTS", 0.3)  # so that the smaller run has one of each kind, too
    few, many = cost_of(25), cost_of(100)
    assert set(few) == {"Advanced", "Exited", "Joined", "Signs", "Started", "Tick"}
    assert {kind: (few[kind], many[kind]) for kind in few if many[kind] > 1.5 * few[kind] + 20} == {}


def test_the_benchmark_fails_if_a_task_with_a_fault_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "SECONDS", 20)
    monkeypatch.setattr(Restarts, "pop_due", lambda restarts, now: [])
    with pytest.raises(RuntimeError, match="faults"):
        faults.simulated(100)
