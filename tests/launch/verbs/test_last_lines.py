"""The page of a run has the last lines of logs: of few tasks, few and short lines, within a time."""

import threading
from typing import Any, List

import pytest

from launch.errors import HostProblem, ProblemKind
from launch.hosts.channel import Silence
from launch.logs import task_logs
from launch.verbs import page as tested
from launch.verbs.page import MOST_TASKS, PATIENCE_S, chosen, last_lines
from tests.support.launch.fakes import FakeChannel, FakeHost, fleet_of

NOTHING_MISSING = b'{"missing": []}\n'


def test_lines_are_cut_and_a_host_without_an_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def print_logs(fleet: Any, tasks: Any, say: Any, **options: Any) -> List[HostProblem]:
        assert options == {"raw": True, "tail": 100, "patience_s": PATIENCE_S}
        say("ps:0@h1 " + "x" * 1000)
        return [HostProblem("h2", ProblemKind.UNREACHABLE, "no route")]

    monkeypatch.setattr(tested, "print_logs", print_logs)
    fleet = fleet_of({"h1": FakeHost("h1"), "h2": FakeHost("h2")})
    found = last_lines(fleet, fleet.spec.tasks)
    assert [len(line) for line in found["lines"]] == [300]
    assert found["missing"] == ["h2: no route"]


class Hanging(FakeChannel):
    """Answers, and is then silent for good."""

    def receive(self, timeout_s: float) -> bytes:
        if not self._script:
            raise Silence
        return super().receive(timeout_s)


class Endless(FakeChannel):
    """Answers, and then sends a line each time."""

    def receive(self, timeout_s: float) -> bytes:
        return super().receive(timeout_s) or b'{"time": 1.0, "task": "worker:0", "line": "more"}\n'


def test_a_host_that_hangs_is_named_and_leaves_neither_a_thread_nor_a_channel_however_often_it_is_asked() -> None:
    first = b'{"time": 1.0, "task": "worker:1", "line": "first"}\n'
    hanging = [Hanging(NOTHING_MISSING) for _ in range(3)]
    sending = [FakeChannel(NOTHING_MISSING, first) for _ in range(3)]
    fleet = fleet_of({"h1": FakeHost("h1", *hanging), "h2": FakeHost("h2", *sending)}, fanout=1)
    threads = []
    for _ in range(3):
        found = last_lines(fleet, fleet.spec.tasks, patience_s=0.1)
        threads.append(threading.active_count())
        assert found["lines"] == ["worker:1@h2 first"]
        assert found["missing"] == ["h1: expected its logs to end before the deadline, found silence"]
    assert threads[0] == threads[1] == threads[2]  # the fleet's own two
    assert [channel.closed for channel in [*hanging, *sending]] == [1] * 6


def test_a_host_that_sends_without_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_logs, "ARRIVED_S", 0.1)
    fleet = fleet_of({"h1": FakeHost("h1", Endless(NOTHING_MISSING))})
    found = last_lines(fleet, fleet.spec.tasks, patience_s=0.0)
    assert found["missing"] == ["h1: expected its logs to end before the deadline, found further lines"]


def test_of_many_tasks_the_chief_and_the_first_others_are_chosen() -> None:
    fleet = fleet_of({f"h{n}": FakeHost(f"h{n}") for n in range(1, 60)})
    tasks = chosen(fleet, [])
    assert len(tasks) == MOST_TASKS < len(fleet.spec.tasks) and tasks[0].name == fleet.spec.chief.name
    assert [task.host for task in chosen(fleet, ["h50"])] == ["h50"]
