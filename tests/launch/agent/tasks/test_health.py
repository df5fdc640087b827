"""An agent tells of tasks that may be frozen, and of no other; what it does not live through counts against no task."""

import json
import os
import signal
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, Iterator

import pytest

from cluster.protocol.heartbeat import PULSE, Sign
from launch.agent.linux.processes import inspect
from launch.agent.linux.procfs import Work
from launch.agent.tasks.task_reports import Seen, Vitals
from tests.support.waiting import eventually


@pytest.fixture
def process() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that waits."""
    with subprocess.Popen(["sleep", "1000"]) as sleeping:
        yield sleeping
        sleeping.kill()


class Host:
    """One task, looked at from 0 on; each look finds that it has used ``processor_s`` more."""

    def __init__(self, folder: Path, pid: int, processor_s: float = 0.0):
        self.folder, self.pid = folder, pid
        self._uses_s, self._used_s = processor_s, 0.0
        self.vitals = Vitals(self._work)
        self.at(1000.0)

    def _work(self, pid: int) -> Work:
        self._used_s += self._uses_s
        return Work(self._used_s, 0)

    def signs(self, beat: int, **values: Any) -> None:
        (self.folder / PULSE).write_text(json.dumps(asdict(Sign(beat, **{"phase": "step", **values}))))

    def at(self, now: float, attempt: int = 0) -> Dict[str, Any]:
        """What is told of the task now; {} for nothing."""
        return self.vitals.look(now, {"worker:1": Seen(attempt, self.pid, self.folder)}).get("worker:1", {})


def test_a_task_that_gives_signs_of_life_is_not_told_of(tmp_path: Path, process: Any) -> None:
    host = Host(tmp_path, process.pid)
    for second in range(30):
        host.signs(second, phase_s=2.0)
        assert host.at(1000.0 + second) == {}


def test_one_that_gives_none_is_told_of_until_it_does(tmp_path: Path, process: Any) -> None:
    host = Host(tmp_path, process.pid)
    host.signs(1)
    told = [host.at(1001.0 + second).get("silent_s") for second in range(6)]
    assert told == [None, None, None, 3.0, 4.0, 5.0]
    host.signs(2)
    assert host.at(1007.0)["silent_s"] == 0.0
    assert host.at(1008.0) == {}


def test_a_step_that_lasts_is_told_with_what_the_task_says_of_it(tmp_path: Path, process: Any) -> None:
    host = Host(tmp_path, process.pid)
    host.signs(1, phase_s=4.0, slowest_s=0.5, owes=True)
    told = host.at(1001.0)
    assert {key: told[key] for key in ("phase", "phase_s", "slowest_s", "owes")} == {
        "phase": "step", "phase_s": 4.0, "slowest_s": 0.5, "owes": True
    }  # fmt: skip


def test_what_a_task_does_of_its_start_is_told_when_it_changes(tmp_path: Path, process: Any) -> None:
    host, told = Host(tmp_path, process.pid), []
    for beat, doing in enumerate(["loads", "loads", "builds", "builds", ""]):
        host.signs(beat, phase="starting", doing=doing)
        told.append(host.at(1001.0 + beat).get("doing"))
    assert told == ["loads", None, "builds", None, ""]


@pytest.mark.parametrize(("processor_s", "counted_s"), [(0.0, 14.0), (0.2, 6.0), (1.0, 14.0), (8.0, 14.0)])
def test_a_step_counts_the_part_of_a_processor_that_it_gets(
    tmp_path: Path, process: Any, processor_s: float, counted_s: float
) -> None:
    host = Host(tmp_path, process.pid, processor_s)
    for second in range(11):
        host.signs(second, phase_s=4.0 + second)
        told = host.at(1001.0 + second)
    assert (told["phase_s"], told["counted_s"]) == (14.0, counted_s)
    host.signs(12, phase_s=3.0)  # the next step
    assert host.at(1012.0)["counted_s"] == 3.0


def test_silence_counts_less_of_a_task_that_works(tmp_path: Path, process: Any) -> None:
    host = Host(tmp_path, process.pid, processor_s=0.3)
    host.signs(1)
    told = [host.at(1001.0 + second).get("silent_s") for second in range(21)]
    assert told[10] is None and told[20] == 6.0


@pytest.mark.parametrize("phase", ["starting", "serving", "following", "ending"])
def test_a_phase_that_may_last_is_not(tmp_path: Path, process: Any, phase: str) -> None:
    host = Host(tmp_path, process.pid)
    host.signs(1, phase=phase, phase_s=500.0)
    assert host.at(1001.0) == {}


def test_a_process_that_a_signal_stops_is_told_of_also_without_any_sign_of_life(tmp_path: Path, process: Any) -> None:
    host = Host(tmp_path, process.pid)
    assert host.at(1001.0) == {}
    os.kill(process.pid, signal.SIGSTOP)
    eventually("it is stopped", lambda: (inspect(process.pid) or process).state == "T")
    told = [host.at(1002.0 + second) for second in range(3)]
    assert [(each["state"], each["stopped_s"], each["silent_s"]) for each in told] == [
        ("T", 1.0, 0.0), ("T", 2.0, 0.0), ("T", 3.0, 0.0)
    ]  # fmt: skip
    assert "phase" not in told[0]


def test_what_the_machine_itself_stood_still_for_counts_as_one_look(tmp_path: Path, process: Any) -> None:
    host = Host(tmp_path, process.pid)
    host.signs(1)
    host.at(1001.0)
    assert host.at(1060.0) == {}
    assert host.at(1061.0)["silent_s"] == 3.0


def test_a_new_attempt_begins_anew(tmp_path: Path, process: Any) -> None:
    host = Host(tmp_path, process.pid)
    host.signs(1)
    for second in range(8):
        host.at(1001.0 + second)
    assert host.at(1009.0, attempt=1) == {}


def test_where_the_signs_of_all_are_late_the_machine_is_slow_and_their_silence_counts_less(
    tmp_path: Path, process: Any
) -> None:
    vitals, tasks = Vitals(), {}
    for name in ("worker:0", "worker:1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / PULSE).write_text(json.dumps(asdict(Sign(1, "step"))))
        tasks[name] = Seen(0, process.pid, tmp_path / name)
    told = [vitals.look(1000.0 + second, tasks) for second in range(14)]
    assert [each["silent_s"] for each in told[-1].values()] == [5.0, 5.0]  # 3 s, and 10 at a fifth
    (tmp_path / "worker:0" / PULSE).write_text(json.dumps(asdict(Sign(2, "step"))))
    assert vitals.look(1014.0, tasks)["worker:1"]["silent_s"] == 5.2
    assert vitals.look(1015.0, tasks)["worker:1"]["silent_s"] == 6.2
