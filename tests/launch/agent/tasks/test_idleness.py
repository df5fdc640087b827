"""An attempt that does nothing is reported after ``quiet_s``; whatever counts as work begins the count again."""

from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence

import pytest

from launch.agent.linux.processes import Process
from launch.agent.linux.procfs import Work
from launch.agent.tasks import idleness
from launch.agent.tasks.idleness import Idleness, Observed, Used, is_work, look_every_s, pids_of

QUIET_S, EVERY_S = 300.0, 3.0
STACK = 'Thread 0x1:\n  File "a.py", line 1 in b\n\nCurrent thread 0x2:\n  File "train.py", line 31 in main\n'


class Machine:
    """An attempt of two processes, a clock, and a log."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch):
        self.log, self.now = folder / "attempt_0.log", 0.0
        self.works: Dict[int, Work] = {10: Work(5.0, 0), 11: Work(0.0, 0)}
        self.traffic = self.gpu_percent = 0.0
        self.attempt, self.state = 0, "S"
        self.asked: List[Sequence[int]] = []
        self.written: Optional[Any] = None
        self.idleness = Idleness(QUIET_S, EVERY_S, lambda text: text.replace("secret", "(secret)"))
        self.log.write_text("step 1\nstep 840\n")
        monkeypatch.setattr(idleness, "work_of", lambda pid, children: self.works.get(pid) if children else None)
        monkeypatch.setattr("launch.agent.tasks.stacks.ask", self._ask)
        monkeypatch.setattr(
            "launch.agent.linux.processes.inspect", lambda pid: Process(pid, 1, pid, pid, self.state, 0)
        )

    def _ask(self, pids: Sequence[int], folder: Path) -> Any:
        self.asked.append(pids)
        return self.written

    def look(self) -> Optional[Dict[str, Any]]:
        task = Observed(self.attempt, [10, 11], self.log.parent, self.log, self.traffic, self.gpu_percent)
        return self.idleness.look(self.now, {"worker:0": task}).get("worker:0")

    def live(self, seconds: float, then: Callable[[], Any] = lambda: None) -> Optional[Dict[str, Any]]:
        """Looks for as long, with what happens before each look; returns the last one's report."""
        found = None
        for _ in range(int(seconds / EVERY_S)):
            self.now += EVERY_S
            then()
            found = self.look()
        return found

    def add(self, pid: int, processor_s: float = 0.0, moved: int = 0) -> None:
        work = self.works[pid]
        self.works[pid] = Work(work.processor_s + processor_s, work.bytes + moved)

    def print(self, text: str) -> None:
        with self.log.open("a") as log:
            log.write(text)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    found = Machine(tmp_path, monkeypatch)
    found.look()
    return found


def test_an_attempt_that_does_nothing_is_reported_with_its_last_line_and_its_age(machine: Machine) -> None:
    assert machine.live(QUIET_S - EVERY_S) is None
    assert machine.live(2 * EVERY_S) == {
        "for_s": QUIET_S + EVERY_S, "line": "step 840", "line_s": QUIET_S + EVERY_S, "stack": None, "held": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    "work",
    [
        lambda m: m.add(10, processor_s=0.02 * EVERY_S),
        lambda m: m.add(11, processor_s=0.02 * EVERY_S),  # a child that computes
        lambda m: m.add(11, moved=int(EVERY_S * (70 << 10))),
        lambda m: setattr(m, "traffic", m.traffic + 200 * EVERY_S),
        lambda m: setattr(m, "gpu_percent", 3.0),
        lambda m: m.print(f"step {m.now}\n"),
    ],
    ids=["processor", "child", "files", "traffic", "gpu", "lines"],
)
def test_one_sign_of_work_suffices_not_to_be_accused(machine: Machine, work: Callable[[Machine], Any]) -> None:
    assert machine.live(3 * QUIET_S, lambda: work(machine)) is None
    assert machine.asked == []


@pytest.mark.parametrize(
    "noise",
    [
        lambda m: m.add(10, processor_s=0.009 * EVERY_S),
        lambda m: m.add(11, moved=int(EVERY_S * (60 << 10))),
        lambda m: setattr(m, "traffic", m.traffic + 90 * EVERY_S),
        lambda m: m.print(f"2026-11-27 21:{int(m.now) % 60:02}:00.5: I master.cc:268] still waiting for worker:1\n"),
        lambda m: m.print(f"I1127 {int(m.now) % 24:02}:00:00.123456 waits\n" if m.now % 30 < EVERY_S else ""),
    ],
    ids=["processor", "files", "traffic", "a line but for its time", "a line of glog"],
)
def test_next_to_nothing_is_nothing(machine: Machine, noise: Callable[[Machine], Any]) -> None:
    assert machine.live(1.2 * QUIET_S, lambda: noise(machine)) is not None


def test_a_burst_of_a_thread_that_sleeps_is_no_work_and_the_same_as_steady_use_is(machine: Machine) -> None:
    burst = iter([0.05] * 5 + [0.0] * 1000)
    assert machine.live(1.1 * QUIET_S, lambda: machine.add(10, processor_s=next(burst) if machine.now % 60 < 3 else 0))
    assert is_work(Used(), Used(processor_s=1.0), 50.0) and not is_work(Used(), Used(processor_s=0.55), 50.0)


def test_a_line_that_comes_again_is_not_new_but_is_the_last_line(machine: Machine) -> None:
    machine.live(60.0, lambda: machine.print("10:00:00 waits\n") if machine.now == 30.0 else None)
    report = machine.live(QUIET_S, lambda: machine.print(f"10:0{int(machine.now) % 10}:00 waits\n"))
    assert report is not None and report["line_s"] == 0.0 and report["line"].endswith("waits")
    machine.print("step 1\n")
    assert machine.live(EVERY_S) is not None  # one of the recent lines
    machine.print("step 841\n")
    assert machine.live(EVERY_S) is None


def test_more_lines_than_one_look_reads_are_news(machine: Machine) -> None:
    machine.live(QUIET_S + EVERY_S)
    machine.print("step 840\n" * 4000)
    assert machine.live(EVERY_S) is None


def test_an_attempt_without_a_line_has_none_and_a_log_that_is_gone_is_none(machine: Machine) -> None:
    machine.attempt, machine.log = 1, machine.log.with_name("attempt_1.log")
    report = machine.live(QUIET_S + 2 * EVERY_S)
    assert report is not None and (report["line"], report["line_s"]) == (None, None)


def test_another_attempt_begins_anew(machine: Machine) -> None:
    assert machine.live(QUIET_S + EVERY_S) is not None
    machine.attempt = 1
    assert machine.live(QUIET_S - EVERY_S) is None


def test_work_begins_the_count_again(machine: Machine) -> None:
    assert machine.live(QUIET_S + EVERY_S) is not None
    machine.traffic = 1e6
    assert machine.live(EVERY_S) is None
    assert machine.live(QUIET_S - EVERY_S) is None
    assert machine.live(2 * EVERY_S) is not None


def test_seconds_in_which_the_agent_does_not_run_do_not_count(machine: Machine) -> None:
    machine.now += 10_000
    assert machine.look() is None
    assert machine.live(QUIET_S - 4 * EVERY_S) is None


def test_the_stacks_are_asked_for_once_and_come_with_the_next_look_the_main_thread_first(machine: Machine) -> None:
    class Written:
        def text(self) -> str:
            return STACK + "secret"

    machine.written = Written()
    assert machine.live(QUIET_S) is None and machine.asked == [[10, 11]]
    report = machine.live(5 * EVERY_S)
    assert report is not None and report["stack"].startswith('Current thread 0x2:\n  File "train.py", line 31 in main')
    assert "(secret)" in report["stack"] and len(machine.asked) == 1


def test_secrets_of_the_last_line_are_hidden_and_a_long_one_is_cut(machine: Machine) -> None:
    machine.print("\x1b[1mtoken secret\x1b[0m " + "x" * 999)
    report = machine.live(QUIET_S + 2 * EVERY_S)
    assert report is not None and report["line"].startswith("token (secret) x") and len(report["line"]) == 300


@pytest.mark.parametrize(("state", "held"), [("T", "stopped by a signal"), ("t", "held by a debugger"), ("S", None)])
def test_what_keeps_a_process_from_running_is_named(machine: Machine, state: str, held: Optional[str]) -> None:
    machine.state = state
    report = machine.live(QUIET_S + EVERY_S)
    assert report is not None and report["held"] == held


def test_a_process_that_has_ended_takes_nothing_back(machine: Machine) -> None:
    machine.add(11, processor_s=100.0)
    machine.live(EVERY_S)
    del machine.works[11]
    assert machine.live(QUIET_S + EVERY_S) is not None


def test_a_short_time_is_looked_at_three_times_and_pids_come_once() -> None:
    assert [look_every_s(3.0, each) for each in (300.0, 3.0, None)] == [3.0, 1.0, 3.0]
    assert pids_of(5, [7, 5, 6], [6, 2]) == [5, 6, 7, 2]


def test_a_line_that_is_written_in_parts_is_shown_whole_and_its_secret_is_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path, monkeypatch)
    for part in ("Loading with sec", "ret of 8 shards ... ", "done"):
        machine.print(part)
        machine.live(EVERY_S)
    found = machine.live(QUIET_S)
    assert found is not None and found["line"] == "Loading with (secret) of 8 shards ... done"
    machine.print("\nnext\n")
    machine.live(EVERY_S)
    found = machine.live(QUIET_S)
    assert found is not None and found["line"] == "next"
