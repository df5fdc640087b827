"""A host sends the newest spans of its tasks by its own time of day, and the reason where a task has none."""

import json
import os
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from cluster.protocol.flight_recorder import FlightRecorder
from cluster.protocol.flight_records import FILE, PsExchange, Wait
from cluster.protocol.heartbeat import Heartbeat
from launch.agent.state.newest_spans import NO_FILE, of_host, of_task
from launch.agent.state.run_folder import RunFolder
from launch.agent.wire.flight import Exchanged
from launch.agent.wire.verb_requests import FlightRequest, RunReference


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """Of a run with a ps and a worker on this host; the worker has taken three steps."""
    folder = RunFolder(tmp_path, "r-1", "h")
    folder.create()
    folder.write("plan.json", {"name": "r", "tasks": [{"name": "ps:0"}, {"name": "worker:0"}]})
    for task in ("ps:0", "worker:0"):
        folder.task(task).mkdir()
    recorder = FlightRecorder(folder.task("worker:0"), attempt=1)
    recorder.describe([PsExchange(3, 4096)])
    for step in (1, 2, 3):
        recorder.begin("step")
        recorder.end(step, 0.25, Wait(0, 0.5))
    return folder


def test_spans_have_the_time_of_day_of_the_host(folder: RunFolder) -> None:
    flight = of_task(folder, "worker:0", 10)
    assert (flight.step, flight.phase, flight.attempt) == ([1, 2, 3], ["step"] * 3, [1] * 3)
    assert all(0 <= flight.read_at - began < 60 for began in flight.began) and time.time() - flight.read_at < 60
    assert (flight.waited_s, flight.longest_ps, flight.longest_s) == ([0.25] * 3, [0] * 3, [0.5] * 3)
    assert (flight.exchanged, flight.torn, flight.why_none) == ([Exchanged(3, 4096)], 0, None)


def test_only_the_newest_are_sent(folder: RunFolder) -> None:
    assert of_task(folder, "worker:0", 2).step == [2, 3]


def test_a_task_without_spans_has_a_reason(folder: RunFolder) -> None:
    assert of_task(folder, "ps:0", 10).why_none == NO_FILE
    (folder.task("worker:0") / FILE).write_bytes(b"?")
    assert "expected 135168 bytes, found 1" in str(of_task(folder, "worker:0", 10).why_none)


def test_the_current_phase_is_that_of_the_newest_sign_and_old_signs_show_their_age(folder: RunFolder) -> None:
    assert of_task(folder, "worker:0", 10).now is None
    pulse = folder.task("worker:0") / "pulse.json"
    heartbeat = Heartbeat(None)
    heartbeat.begin_phase("step")
    sign = {**asdict(heartbeat.beat()), "phase_s": 9.0, "slowest_s": 2.0, "owes": False}
    pulse.write_text(json.dumps(sign))
    now = of_task(folder, "worker:0", 10).now
    assert now is not None and (now.phase, now.phase_s, now.owes, now.asked_s) == ("step", 9.0, False, 5.0)
    assert now.age_s < 30
    os.utime(str(pulse), (time.time() - 100, time.time() - 100))
    now = of_task(folder, "worker:0", 10).now
    assert now is not None and 100 <= now.age_s < 130


def test_a_host_sends_the_tasks_that_are_asked_for_and_its_own(folder: RunFolder) -> None:
    reference = RunReference("r", "h", str(folder.workdir), run="r-1")
    found = of_host(FlightRequest(reference, ("worker:0", "worker:7"), 10))
    assert found.run == "r-1" and [each.task for each in found.flights] == ["worker:0"]


def test_a_host_that_has_not_taken_part_sends_nothing(tmp_path: Path) -> None:
    found = of_host(FlightRequest(RunReference("r", "h", str(tmp_path)), ("worker:0",), 10))
    assert (found.run, found.flights) == (None, [])
