"""The events of a run are those that its statuses show, each once, also for another agent of the lead."""

from typing import Any, List

import pytest

from cluster.protocol.typed_json import from_values, to_values
from launch.agent.hooks.hooks import LONGEST, STRAGGLES_S, WELL_S, Events
from launch.status.hook_event import HookEvent
from launch.status.incident_status import IncidentStatus
from launch.status.run import FormationStatus, RunStatus
from launch.status.task import QuietStatus
from tests.support.launch.statuses import status, task

SLOW = task("worker:1@gpu02", straggler=True, step_time_ms=61.2, wait_ms=0.2)
WELL = task("worker:1@gpu02")
AT = "2026-11-20T16:04:41+00:00"


def kinds(events: List[HookEvent]) -> List[str]:
    return [event.event for event in events]


def formed(number: int, *tasks: Any, **fields: Any) -> RunStatus:
    """A run in this formation, of three workers of four unless told otherwise."""
    formation = FormationStatus(**{"number": number, "workers": 3, "of_workers": 4, "ps": 1, "of_ps": 1, **fields})
    return status(*tasks, formation=formation, updated=AT)


def test_a_run_starts_once_when_every_task_has_been_up() -> None:
    events = Events()
    assert events.look(status(state="starting"), False, 0.0) == []
    (started,) = events.look(status(task(), WELL), True, 1.0)
    assert (started.id, started.event, started.text) == ("r-1/started", "started", "r-1 is up: 2 tasks")
    assert events.look(status(), True, 2.0) == []


@pytest.mark.parametrize("state", ["succeeded", "failed", "stopped"])
def test_a_run_ends_once_and_started_before_if_it_was_up(state: str) -> None:
    events = Events()
    assert kinds(events.look(status(state=state), True, 0.0)) == ["started", state]
    assert events.look(status(state=state), True, 1.0) == []
    assert kinds(Events().look(status(state=state), False, 0.0)) == [state]


def test_a_failure_names_its_cause_task_host_and_times() -> None:
    killed = IncidentStatus(2, "signal", role="worker", index=1, host="gpu02", log="/l", cause="killed")
    ended = status(
        state="failed", cause="worker:1@gpu02: killed", cause_incident=2, incidents=[IncidentStatus(1), killed],
        global_step=840, steps=2000, checkpoint_step=800, updated=AT, started="s", ended="e",
    )  # fmt: skip
    (event,) = Events({"saved 800"}).look(ended, False, 0.0)
    assert event == HookEvent(
        id="r-1/failed", event="failed", text="r-1 has failed: worker:1@gpu02: killed", run="r-1", name="r",
        state="failed", cause="worker:1@gpu02: killed", task="worker:1", host="gpu02", log="/l", step=840, steps=2000,
        checkpoint_step=800, time=AT, started="s", ended="e",
    )  # fmt: skip
    assert from_values(HookEvent, to_values(event)) == event


def test_each_checkpoint_has_an_event_also_one_of_a_step_that_is_saved_again() -> None:
    events = Events()
    for step, found in ((None, []), (800, ["saved"]), (800, []), (900, ["saved"]), (800, ["saved"])):
        assert kinds(events.look(status(checkpoint_step=step), False, 0.0)) == found
    (event,) = Events(events.raised).look(status(checkpoint_step=850, updated=AT), False, 0.0)
    assert (event.id, event.text) == (f"r-1/saved/850/{AT}", "r-1 has a checkpoint of step 850")
    assert event.checkpoint_step == 850 and len(events.raised) == 1


def test_a_success_has_its_step_and_metrics() -> None:
    (event,) = Events().look(status(state="succeeded", global_step=9, metrics={"auc": None}), False, 0.0)
    assert (event.text, event.cause, event.metrics) == ("r-1 has succeeded at step 9", None, {"auc": None})


def test_a_long_cause_is_cut() -> None:
    (event,) = Events().look(status(state="failed", cause="x" * 9999), False, 0.0)
    assert len(event.text) == len(event.cause or "") == LONGEST


def test_a_formation_is_an_event_when_it_trains_and_no_other_time() -> None:
    events = Events()
    assert events.look(formed(0), False, 0.0) == []
    assert events.look(formed(1, forming=True), False, 1.0) == []
    assert events.look(formed(1, task(state="starting")), False, 2.0) == []
    (event,) = events.look(formed(2, without=["gpu03"]), False, 3.0)
    assert event.text == "r-1 trains again, with 3 of 4 workers, 1 of 1 ps; without gpu03"
    assert (event.id, event.without) == (f"r-1/reformed/2/{AT}", ["gpu03"])
    assert events.look(formed(2), False, 4.0) == []


def test_a_formation_without_a_lost_host_has_the_cause_of_its_loss() -> None:
    lost = IncidentStatus(1, "host", host="gpu03", cause="no message for 13 s")
    shown = formed(1, without=["gpu03"])
    (event,) = Events().look(from_values(RunStatus, {**to_values(shown), "incidents": [to_values(lost)]}), False, 0.0)
    assert event.cause == "gpu03: no message for 13 s"


def test_a_worker_is_a_straggler_when_it_was_slow_for_long_without_a_pause() -> None:
    events = Events()
    slow = status(task(), SLOW, waiting_share=0.48, updated=AT)
    assert events.look(slow, False, 0.0) == [] and events.look(slow, False, STRAGGLES_S - 1) == []
    events.look(status(task(), WELL), False, STRAGGLES_S - 0.5)
    assert events.look(slow, False, STRAGGLES_S) == []
    (event,) = events.look(slow, False, 2 * STRAGGLES_S)
    assert (event.id, event.task, event.host) == (f"r-1/straggler/worker:1/{AT}", "worker:1", "gpu02")
    assert event.text == (
        "r-1 has a slow worker: worker:1@gpu02, 61.0 ms of own work per step; the other workers wait 48 % of each step"
    )
    assert events.look(slow, False, 1000.0) == []


def test_a_straggler_is_an_event_again_only_after_it_was_well_for_long() -> None:
    events = Events()
    slow, well = status(task(), SLOW), status(task(), WELL)
    events.look(slow, False, 0.0)
    assert kinds(events.look(slow, False, 30.0)) == ["straggler"]
    events.look(well, False, 40.0)
    events.look(slow, False, 50.0)
    assert events.look(slow, False, 100.0) == []
    events.look(well, False, 110.0)
    events.look(well, False, 110.0 + WELL_S)
    events.look(slow, False, 1000.0)
    assert kinds(events.look(slow, False, 1030.0)) == ["straggler"]


def test_another_agent_of_the_lead_raises_nothing_again() -> None:
    events, slow = Events(), status(task(), SLOW)
    events.look(slow, True, 0.0)
    events.look(slow, True, 30.0)
    after = Events(events.raised)
    assert after.look(slow, True, 0.0) == [] and after.look(slow, True, 30.0) == []
    assert kinds(after.look(status(state="failed"), True, 40.0)) == ["failed"]


def stands(name: str, at_s: float, **fields: Any) -> Any:
    return task(name, quiet=QuietStatus(at_s, **fields))


def test_a_standstill_is_one_event_that_names_the_worker_that_stood_first_and_comes_again_after_work() -> None:
    events = Events(["started"])
    first = stands("worker:1@gpu02", 90.0, line="step 840", where="in train.py:31 (main)")
    still = status(stands("ps:0@cpu01", 10.0), stands("worker:0@gpu01", 95.0), first, updated=AT)
    (event,) = events.look(still, True, 0.0)
    assert event.text == (
        "r-1 stands still: worker:1@gpu02, in train.py:31 (main), last line: step 840; and 2 more tasks"
    )
    assert (event.id, event.event, event.task) == (f"r-1/quiet/worker:1/{AT}", "quiet", "worker:1")
    assert (event.host, event.log) == ("gpu02", first.log)
    assert events.look(still, True, 1.0) == [] and Events(events.raised).look(still, True, 2.0) == []
    assert events.look(status(task()), True, 3.0) == []
    (again,) = events.look(status(stands("worker:0@gpu01", 99.0), updated="later"), True, 4.0)
    assert again.text == "r-1 stands still: worker:0@gpu01, no line yet" and again.id != event.id


def test_a_run_that_has_ended_stands_still_no_more() -> None:
    events = Events(["started"])
    ended = events.look(status(stands("worker:0@gpu01", 9.0), state="stopped"), True, 0.0)
    assert kinds(ended) == ["stopped"]
