"""Each promise is broken by a product that does not keep it: none of them holds by itself."""

import asyncio
from dataclasses import replace
from typing import Any, Callable, List

import pytest

from launch.agent.protocol.silence import LauncherSilence, Silences
from launch.agent.service import lead, publication
from launch.agent.service.member import Member
from launch.agent.supervision import restart_policy
from launch.agent.supervision.agent_lives import Ends
from launch.agent.supervision.ending import PS, Ending
from launch.agent.supervision.incidents import Incidents
from launch.agent.supervision.restart_policy import Restarts
from launch.agent.supervision.stall import Stalls
from launch.agent.supervision.status import run_status
from launch.agent.supervision.task_records import Roster
from launch.agent.supervision.together import Together
from tests.simulation import promises
from tests.simulation.faults import Fault
from tests.simulation.operators import Operators
from tests.simulation.promises import Promises
from tests.simulation.runs import TOGETHER_FROM
from tests.simulation.short import short
from tests.simulation.verdict import failure

PLAIN = 17459  # a run of several hosts; its faults are not used here
ELASTIC = 2498  # of four hosts, attached
RETURNING = 19271  # one of five hosts that a boot brings back
WAITING = [Fault(60.0, "gone", "h3"), Fault(70.0, "stop")]
DETACHED = 30181  # an elastic one of five hosts, which its launcher leaves
Replace = Callable[[Any, str, Any], None]


def broken(seed: int, *faults: Fault) -> str:
    return failure(short(seed, *faults)) or ""


def test_two_processes_of_a_task() -> None:
    world = short(PLAIN)
    world.agenda.add(60.0, lambda: world.machines["h1"].begin("worker:0", 9, world.cluster))
    assert (failure(world) or "").startswith("I1: 2 processes of one task: worker:0 attempt 0 on h0, ")


def test_a_process_that_starts_beside_its_former_one() -> None:
    world = short(PLAIN)
    world.agenda.add(60.0, lambda: world.machines["h0"].begin("worker:0", 9, world.cluster))
    assert (failure(world) or "").startswith("I3: worker:0 starts on h0 while worker:0 attempt 0 on h0 lives")


def test_a_process_that_another_lead_has_ordered() -> None:
    world = short(PLAIN)

    def begin() -> None:
        world.machines["h1"].begin("worker:9", 9, world.cluster).lead = "another"

    world.agenda.add(60.0, begin)
    assert (failure(world) or "").startswith("I4: 2 leads on one host: ")


def test_steps_that_are_lost_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = Stalls._lost_anew
    monkeypatch.setattr(Stalls, "_lost_anew", lambda *of: 2 * lost(*of))
    assert broken(DETACHED, Fault(100.0, "crash", "ps:0")).startswith("I5: ")


def test_servers_that_end_before_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ending, "_due", lambda self, processes, now: PS)
    assert broken(PLAIN, Fault(100.0, "stop")).startswith("I6: ps:0 is ended while worker:0, ")


def test_a_run_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Operators, "_down", lambda self, request, again: None)
    assert broken(PLAIN, Fault(30.0, "freeze", "worker:0", 1.0), Fault(60.0, "stop")).startswith("I7: ")


def test_a_run_that_waits_for_a_boot_as_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    assert broken(RETURNING, *WAITING) == ""
    newly_lost = Silences.newly_lost
    monkeypatch.setattr(Silences, "newly_lost", lambda self, now, spared, awaits_boots: newly_lost(self, now, spared))
    assert broken(RETURNING, *WAITING).startswith("I7: 150 s after its end was asked for, ")


def test_steps_that_nobody_counts_as_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stalls, "_go_back", lambda self, *args: None)
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


def test_a_restart_that_comes_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restart_policy, "pause_s", lambda failures, backoff_s: 9.0)
    assert "expected a pause of 5.0 s at most, found 1" in broken(PLAIN, Fault(100.0, "crash", "worker:0"))


def test_a_success_that_shows_another_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def shown(*args: Any, **more: Any) -> Any:
        return replace(run_status(*args, **more), global_step=7)

    monkeypatch.setattr("launch.agent.supervision.supervisor.run_status", shown)
    monkeypatch.setattr(Promises, "_the_status_is_new", lambda self: None)
    assert broken(PLAIN).startswith("I11: step 225, saved 225, is shown as (7, 225)")


def test_two_faults_cost_what_each_does(monkeypatch: pytest.MonkeyPatch) -> None:
    crashes = [Fault(60.0, "crash", "worker:1"), Fault(260.0, "crash", "worker:1")]
    assert failure(short(PLAIN, *crashes)) is None
    monkeypatch.setattr(restart_policy, "pause_s", lambda failures, backoff_s: 1.0 + 9.0 * failures)
    found = broken(PLAIN, *crashes)
    assert found.startswith("I13: 60.0 crash worker:1, 260.0 crash worker:1: ") and "a pause of 6.0 s" in found


def test_a_task_that_leaves_late_pauses_longer_where_another_fault_ends_it() -> None:
    """Its three seconds were no fault of the run: found by seed 214087."""
    faults = [Fault(210.0, "late", "worker:0"), Fault(330.0, "crash", "worker:0")]
    assert failure(short(214087, *faults)) is None


def test_an_incident_that_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Incidents, "go_on", lambda self, now: None)
    assert "I13: 100.0 leave h3: expected that training went on after incident 1, found None s" in broken(
        DETACHED, Fault(100.0, "leave", "h3")
    )


def test_a_status_with_the_end_of_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Roster.begin_attempt

    def kept(self: Roster, task: Any) -> None:
        before = task.exit_code
        begin(self, task)
        task.exit_code = before

    monkeypatch.setattr(Roster, "begin_attempt", kept)
    assert broken(PLAIN, Fault(100.0, "crash", "worker:1")).startswith("I14: a task that runs is shown with the end ")


def test_a_status_of_a_moment_ago_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promises, "STATUS_S", 0.0)
    assert broken(ELASTIC) == ""


def test_a_status_that_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publication, "PUBLISH_S", 60.0)
    assert broken(PLAIN).startswith("I14: the lead knows of running at ")


def test_two_processes_of_one_attempt() -> None:
    world = short(PLAIN)
    world.agenda.add(60.0, lambda: world.machines["h1"].begin("worker:9", 7, world.cluster))
    world.agenda.add(60.0, lambda: world.machines["h2"].begin("worker:9", 7, world.cluster))
    assert (failure(world) or "").startswith("I5: worker:9 starts on h2 as attempt 7 once more")


def test_members_that_stay_where_nobody_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Member, "_check_refusal", lambda self, error: None)
    assert broken(ELASTIC, Fault(60.0, "agent", "h0")).startswith("I7: nobody leads any more for 90 s, and there are")


async def _no_answer(self: lead.Lead) -> Any:
    await asyncio.sleep(1e6)
    yield True


def test_a_caller_that_gets_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lead.Lead, "_save", _no_answer)
    assert broken(PLAIN, Fault(60.0, "save")).startswith("I7: h0 has not answered save for 60 s")


STOPPED = [Fault(60.0, "keeper", "h0"), Fault(60.1, "stopped", "h0", 70.0)]  # nobody kills the lead's agent


def test_a_stopped_agent_answers_its_callers_once_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    assert broken(ELASTIC, *STOPPED, Fault(61.0, "save")) == ""
    monkeypatch.setattr(lead.Lead, "_save", _no_answer)
    world = short(ELASTIC, *STOPPED, Fault(61.0, "save"))
    assert (failure(world) or "").startswith("I7: h0 has not answered save for 60 s") and world.agenda.now > 190.0


@pytest.mark.parametrize("faults, until", [([], 95.0), (STOPPED, 136.0)], ids=["", "stopped"])
def test_a_lead_that_outlives_its_lease(monkeypatch: pytest.MonkeyPatch, faults: List[Fault], until: float) -> None:
    monkeypatch.setattr(LauncherSilence, "length_s", lambda self, now, since_boot: 0.0)
    world = short(ELASTIC, *faults, Fault(60.2, "launcher"))
    assert (failure(world) or "").startswith("I7: the launcher has been gone for ")
    assert until < world.agenda.now < until + 1.0


def test_agents_that_end_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ends, "too_many", lambda self, now: 0)  # for the lead and for the keeper
    monkeypatch.setattr(promises, "SOME_ENDS_S", 0.0)
    ends = [Fault(60.0 + 70.0 * number, "agent", "h3") for number in range(6)]  # the pauses grow to a minute
    assert broken(DETACHED, *ends).startswith("I7: an agent has ended 6 times, and the run is ")


def test_a_worker_that_starts_beside_former_ones_where_all_restart_together(monkeypatch: pytest.MonkeyPatch) -> None:
    faults = [Fault(50.0, "stubborn", "worker:0", 60.0), Fault(60.0, "crash", "worker:1")]
    assert failure(short(TOGETHER_FROM, *faults)) is None
    monkeypatch.setattr(Together, "_hold", lambda together, waiting: None)
    assert broken(TOGETHER_FROM, *faults).startswith("I3: worker:1 is ordered to start while worker:0 attempt 0")
