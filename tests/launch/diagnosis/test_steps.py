"""The summary of a diagnosis, and the lines on the terminal, name the task that others wait for."""

from dataclasses import replace
from pathlib import Path
from typing import List

import pytest

from cluster.protocol.typed_json import to_values
from cluster.spec import Spec, load
from launch.agent.wire.host_facts import Clock
from launch.diagnosis.collect import HostReport
from launch.diagnosis.summary import as_values, spoken, text
from launch.diagnosis.symptoms import Diagnosis, time_line_of
from tests.launch.diagnosis.evidence import status, told
from tests.launch.timeline.simulated import Recording


@pytest.fixture
def spec(tmp_path: Path) -> Spec:
    file = tmp_path / "r.yaml"
    file.write_text("name: r\njob: digits\ncluster: {ps: [gpu0], worker: [gpu0, gpu1]}\ntrain: {steps: 100}\n")
    return load(file)


def reports(recording: Recording) -> List[HostReport]:
    """Of two hosts, whose clocks the launcher has measured."""
    tasks = [{"role": "worker", "index": n, "host": f"gpu{n}", "state": "running"} for n in range(2)]
    found = []
    for worker in range(2):
        lead = {"status": status("gpu0", tasks=tasks)} if worker == 0 else {}
        spans = {f"tasks/worker.{worker}/spans": to_values(recording.flight(worker))}
        report = told(f"gpu{worker}", **lead, **spans)
        report.facts = replace(report.facts, clock=Clock(recording.ahead_s[worker], 0.01))
        found.append(report)
    return found


@pytest.fixture
def stalled() -> Recording:
    recording = Recording([0.0, 1000.0]).take(30)
    recording.now += 40
    recording.sign(0, "step", 40.0, owes=False)
    recording.sign(1, "step", 40.0, owes=True)
    return recording


def test_the_summary_names_the_task_that_others_wait_for_and_since_when(stalled: Recording, spec: Spec) -> None:
    hosts = reports(stalled)
    found = Diagnosis("r", hosts, time_line_of(hosts, spec))
    lines = text(found, "now").splitlines()
    at = lines.index("# Steps")
    assert lines[at + 1].endswith("(40 s): worker:0@gpu0 waits for worker:1@gpu1")
    assert lines[at + 2].endswith("worker:1@gpu1: it has not sent its gradient")
    assert lines[at + 1] in spoken(found, "x", 1)
    assert as_values(found, "x", 1)["steps"][0] == lines[at + 1]


def test_spans_of_a_host_that_are_no_spans_are_a_missing_part(spec: Spec) -> None:
    report = told("gpu0", **{"tasks/worker.0/spans": {"task": 3}})
    assert "tasks/worker.0/spans.json" in report.missing
    assert time_line_of([report], spec) is None


def test_without_spans_the_summary_has_no_such_section(spec: Spec) -> None:
    found = [told("gpu0", status=status("gpu0"))]
    assert "# Steps" not in text(Diagnosis("r", found, time_line_of(found, spec)), "now")
