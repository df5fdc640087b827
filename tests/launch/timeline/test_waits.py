"""When a step lasts, the time line names the tasks that wait, since when, and those that they wait for."""

from dataclasses import replace
from typing import List

import pytest

from launch.agent.wire.flight import Current, Flight
from launch.timeline.drawing import clock, stalled
from launch.timeline.flights import TaskLine, TimeLine
from launch.timeline.waits import Stall, stall
from tests.launch.timeline.simulated import LATENCY_S, Recording
from tests.support.launch.statuses import task


@pytest.fixture
def recording() -> Recording:
    """Three workers that have taken ten steps, 30 s ago."""
    recording = Recording([0.0, 50.0, -50.0]).take(10)
    recording.now += 30
    return recording


def seen(recording: Recording, **states: str) -> Stall:
    return seen_in(recording.line(states={int(name[1:]): state for name, state in states.items()}))


def seen_in(line: TimeLine) -> Stall:
    found = stall(line)
    assert found is not None
    return found


def titles(found: Stall) -> List[str]:
    return [line.title for line in found.waiting]


def test_workers_wait_for_the_one_that_owes_its_gradient(recording: Recording) -> None:
    recording.sign(0, "step", 30.0, owes=False)
    recording.sign(1, "step", 30.0, owes=True)
    recording.sign(2, "step", 30.0, owes=False)
    found = seen(recording)
    assert titles(found) == ["worker:0@gpu0", "worker:2@gpu2"]
    assert [(each.line.title, each.why) for each in found.blockers] == [
        ("worker:1@gpu1", "it has not sent its gradient")
    ]
    when = f"step 11, since {clock(found.since)} (30 s)"
    assert stalled(found) == [
        f"{when}: worker:0@gpu0, worker:2@gpu2 wait for worker:1@gpu1",
        f"{when}: worker:1@gpu1: it has not sent its gradient",
    ]


def test_the_wait_began_when_the_step_before_it_ended_on_one_clock(recording: Recording) -> None:
    for worker, owes in enumerate((False, True, False)):
        recording.sign(worker, "step", 30.0, owes)
    ended = recording.spans[0][-1]["ended"]  # in true time, which the clock of gpu0 has
    assert seen(recording).since == pytest.approx(ended, abs=4 * LATENCY_S)


@pytest.mark.parametrize(
    ("phase", "why"),
    [("starting", "it is starting"), ("saving", "it writes a checkpoint"), ("evaluating", "it measures a checkpoint")],
)
def test_workers_wait_for_one_that_is_in_no_step(recording: Recording, phase: str, why: str) -> None:
    recording.sign(0, phase, 30.0)
    for worker in (1, 2):
        recording.sign(worker, "step", 30.0, owes=False)
    (blocker,) = seen(recording).blockers
    assert (blocker.line.name, blocker.why) == ("worker:0", why)


def test_workers_wait_for_one_whose_process_is_stopped(recording: Recording) -> None:
    recording.sign(1, "step", 0.0, owes=None, age_s=29.0)
    for worker in (0, 2):
        recording.sign(worker, "step", 30.0, owes=False)
    (blocker,) = seen(recording).blockers
    assert (blocker.line.name, blocker.why) == ("worker:1", "it has given no sign of life for 29 s")


@pytest.mark.parametrize("state", ["restarting", "lost", "failed"])
def test_workers_wait_for_one_without_a_process_whatever_its_last_sign(recording: Recording, state: str) -> None:
    for worker in range(3):
        recording.sign(worker, "step", 30.0, owes=False)
    found = seen(recording, w1=state)
    assert titles(found) == ["worker:0@gpu0", "worker:2@gpu2"]
    assert [(each.line.name, each.why) for each in found.blockers] == [("worker:1", f"it is {state}")]


def test_without_an_answer_of_the_ps_no_worker_is_blamed(recording: Recording) -> None:
    for worker in range(3):
        recording.sign(worker, "step", 30.0, owes=None, asked_s=27.0)
    found = seen(recording)
    assert (found.waiting, found.blockers, len(found.unanswered)) == ([], [], 3)
    (line,) = stalled(found)
    assert line.endswith("asked the ps, but got no answer; check the ps and the network")


def test_a_worker_that_has_not_asked_yet_blames_neither_a_worker_nor_the_ps(recording: Recording) -> None:
    """It asks once a step lasts twice as long as the slowest one of the last minutes."""
    for worker in range(3):
        recording.sign(worker, "step", 30.0, owes=None)
    found = seen(recording)
    assert (found.waiting, found.blockers, found.unanswered) == ([], [], [])
    assert stalled(found)[0].endswith("worker:0@gpu0, worker:1@gpu1, worker:2@gpu2 have not ended the step")


def test_a_sign_from_before_the_newest_span_is_of_an_earlier_step(recording: Recording) -> None:
    recording.now -= 29.5
    for worker in range(3):
        recording.sign(worker, "step", 9.0, owes=False, age_s=0.9)
    assert stall(recording.line()) is None


@pytest.mark.parametrize(
    ("state", "age_s", "why"), [("running", 30.0, "it has given no sign of life for 30 s"), ("lost", 0.0, "it is lost")]
)
def test_a_ps_that_is_stopped_or_lost_is_named(recording: Recording, state: str, age_s: float, why: str) -> None:
    for worker in range(3):
        recording.sign(worker, "step", 30.0, owes=None, asked_s=27.0)
    ps = TaskLine(Flight("ps:0", recording.now), "cpu0", recording.now, 0.0, status=task("ps:0@cpu0", state=state))
    ps = replace(ps, now=Current("serving", 99.0, age_s=age_s) if state == "running" else None)
    found = recording.line()
    (blocker,) = seen_in(replace(found, lines=[ps, *found.lines])).blockers
    assert (blocker.line.name, blocker.why) == ("ps:0", why)


def test_where_no_worker_owes_anything_the_ps_are_named(recording: Recording) -> None:
    for worker in range(3):
        recording.sign(worker, "step", 30.0, owes=False)
    assert stalled(seen(recording))[0].endswith("wait, but no task owes a gradient; check the ps and the network")


def test_a_run_whose_steps_go_on_has_no_stall(recording: Recording) -> None:
    for worker in range(3):
        recording.sign(worker, "step", 0.0)
    assert stall(recording.line()) is None


def test_a_run_that_has_ended_has_no_stall(recording: Recording) -> None:
    for worker in range(3):
        recording.sign(worker, "step", 30.0, owes=False)
    assert stall(recording.line(states=dict.fromkeys(range(3), "stopped"))) is None
