"""The newest spans of a task are in a file of fixed size, whatever ends the task, and no torn one is believed."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, List

import pytest

from cluster.protocol import flight_recorder
from cluster.protocol.flight_recorder import LEAST_S, FlightRecorder
from cluster.protocol.flight_records import FILE, HEADER, MOST_PS, SIZE, SLOT, SLOTS, PsExchange, Wait, read_records
from tests.support import ROOT
from tests.support.clocks import Clock

KILLED = """
import os, signal, sys
from cluster.protocol.flight_recorder import FlightRecorder

recorder = FlightRecorder(sys.argv[1])
for step in range(5):
    recorder.begin("step")
    recorder.end(step)
os.kill(os.getpid(), signal.SIGKILL)
"""


def steps_in(folder: Path) -> List[int]:
    return [span.step for span in read_records(folder / FILE).spans]


def record(folder: Path, steps: Any, attempt: int = 0) -> FlightRecorder:
    recorder = FlightRecorder(folder, attempt)
    for step in steps:
        recorder.begin("step")
        recorder.end(step)
    return recorder


@pytest.mark.not_fast
def test_the_steps_of_a_task_that_was_killed_by_sigkill_can_be_read(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], cwd=str(ROOT), check=False)
    assert ended.returncode == -signal.SIGKILL
    assert steps_in(tmp_path) == [0, 1, 2, 3, 4]


def test_a_span_has_its_times_its_waits_and_how_it_ended(tmp_path: Path) -> None:
    clock = Clock(100.0)
    recorder = FlightRecorder(tmp_path, attempt=3, clock=clock)
    clock.now = 104.0
    recorder.end(7)
    recorder.begin("step")
    clock.now = 104.5
    recorder.end(8, waited_s=0.25, longest=Wait(1, 0.375))
    recorder.end(8, is_whole=False)
    start, step, broken = read_records(tmp_path / FILE).spans
    assert (start.phase, start.began, start.ended, start.step, start.attempt) == ("starting", 100.0, 104.0, 7, 3)
    assert (start.waited_s, start.longest) == (None, None)  # which is not a wait of no time
    assert (step.phase, step.began, step.ended) == ("step", 104.0, 104.5)
    assert (step.waited_s, step.longest, step.is_whole) == (0.25, Wait(1, 0.375), True)
    assert not broken.is_whole


def test_a_pause_that_nobody_would_see_is_no_span(tmp_path: Path) -> None:
    clock = Clock(100.0)
    recorder = FlightRecorder(tmp_path, clock=clock)
    for lasts_s in (LEAST_S / 2, LEAST_S * 2):
        recorder.begin("saving")
        clock.now += lasts_s
        recorder.end_pause(9)
    (span,) = read_records(tmp_path / FILE).spans
    assert span.phase == "saving" and span.ended - span.began == pytest.approx(LEAST_S * 2)


def test_the_file_keeps_its_size_and_the_newest_spans(tmp_path: Path) -> None:
    record(tmp_path, range(SLOTS + 10))
    assert (tmp_path / FILE).stat().st_size == SIZE
    assert steps_in(tmp_path) == list(range(10, SLOTS + 10))
    assert SLOTS >= 2 * 1000  # a thousand steps, also where the chief saves after each


def test_the_next_attempt_goes_on_behind_the_steps_of_the_one_before(tmp_path: Path) -> None:
    record(tmp_path, range(3))
    record(tmp_path, [1, 2], attempt=1)
    spans = read_records(tmp_path / FILE).spans
    assert [(span.number, span.attempt, span.step) for span in spans] == [
        (0, 0, 0), (1, 0, 1), (2, 0, 2), (3, 1, 1), (4, 1, 2),
    ]  # fmt: skip


def test_a_process_that_waits_for_its_turn_leaves_the_file_of_the_one_that_trains_alone(tmp_path: Path) -> None:
    waiting = FlightRecorder(tmp_path, attempt=1)
    waiting.describe([PsExchange(1, 8)])
    waiting.begin("starting")
    assert not (tmp_path / FILE).exists()


@pytest.mark.parametrize("byte", range(SLOT - 4))
def test_a_record_that_is_torn_at_any_byte_counts_and_is_not_believed(tmp_path: Path, byte: int) -> None:
    record(tmp_path, range(3))
    with open(str(tmp_path / FILE), "r+b") as file:
        file.seek(HEADER + SLOT + byte)
        (before,) = file.read(1)
        file.seek(HEADER + SLOT + byte)
        file.write(bytes([before ^ 0x5A]))
    found = read_records(tmp_path / FILE)
    assert [span.step for span in found.spans] == [0, 2] and found.torn == 1


def test_records_of_another_boot_have_no_place_in_time(tmp_path: Path) -> None:
    record(tmp_path, range(3))
    found = read_records(tmp_path / FILE, boot=1)
    assert (found.spans, found.earlier, found.torn) == ([], 3, 0)


def test_the_header_has_what_a_step_exchanges_with_each_ps_and_a_torn_one_costs_no_span(tmp_path: Path) -> None:
    recorder = record(tmp_path, [0], attempt=2)
    recorder.describe([PsExchange(pushes=3, bytes=1 << 40)] * (MOST_PS + 1))
    header = read_records(tmp_path / FILE).header
    assert header is not None and header.attempt == 2
    assert header.ps == [PsExchange(3, 1 << 40)] * MOST_PS
    with open(str(tmp_path / FILE), "r+b") as file:
        file.write(b"?" * HEADER)
    found = read_records(tmp_path / FILE)
    assert found.header is None and len(found.spans) == 1


def test_a_file_of_another_size_is_refused_and_begun_again(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"of another version")
    with pytest.raises(ValueError, match=f"expected {SIZE} bytes, found 18"):
        read_records(tmp_path / FILE)
    record(tmp_path, [5])
    assert steps_in(tmp_path) == [5]


def test_a_disk_that_fails_ends_the_recording_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    recorder = record(tmp_path, [0])

    def full(*_: Any) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(flight_recorder, "pwrite", full)
    for step in range(1, 4):
        recorder.end(step)
    assert capsys.readouterr().out.count("the times of steps are no longer recorded: Input/output error") == 1
    assert steps_in(tmp_path) == [0]


def test_something_else_of_the_files_name_ends_the_recording_and_nothing_else(tmp_path: Path, capsys: Any) -> None:
    os.mkfifo(str(tmp_path / FILE))
    record(tmp_path, [0, 1])
    assert "are no longer recorded" in capsys.readouterr().out


def test_without_a_folder_nothing_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    recorder = FlightRecorder(None)
    recorder.end(0)
    assert not any(tmp_path.iterdir())
