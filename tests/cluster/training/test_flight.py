"""A worker's flight recorder has every step that it took, its waits, its saves, and its exchange with each ps."""

from pathlib import Path
from typing import List

import jobs.digits
from cluster.protocol.flight_records import FILE, FlightRecords, Span, read_records
from tests.support.training.alone import train_alone

STEPS = 12
ARGS = {"hidden": 16}


def trained(folder: Path, **settings: object) -> FlightRecords:
    settings = {"steps": STEPS, "batch_size": 16, "checkpoint": {"every_s": 0.0}, **settings}
    assert train_alone(jobs.digits, folder, ARGS, **settings).succeeded
    return read_records(folder / "worker.0" / FILE)


def of(records: FlightRecords, *phases: str) -> List[Span]:
    return [span for span in records.spans if span.phase in phases]


def test_a_synchronous_worker_records_each_step_with_its_wait_and_each_save(tmp_path: Path) -> None:
    records = trained(tmp_path)
    assert [span.phase for span in records.spans[:2]] == ["starting", "first step"]
    assert records.spans[-1].phase == "ending" and records.spans[-1].step == STEPS
    steps = of(records, "first step", "step")
    assert [span.step for span in steps] == list(range(1, STEPS + 1))
    assert all(span.waited_s is not None and 0 <= span.waited_s < span.ended - span.began for span in steps)
    assert {span.longest.ps for span in steps if span.longest} <= {0}
    assert len(of(records, "saving")) >= STEPS - 1
    assert all(before.ended <= after.began for before, after in zip(records.spans, records.spans[1:]))
    assert records.header is not None and [each.pushes > 0 < each.bytes for each in records.header.ps] == [True]


def test_an_asynchronous_worker_waits_for_no_other(tmp_path: Path) -> None:
    steps = of(trained(tmp_path, mode="async"), "first step", "step")
    assert len(steps) == STEPS and {span.waited_s for span in steps} == {None}
