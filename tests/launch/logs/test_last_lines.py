"""The page of a run has the last lines of logs: of few tasks, few and short lines, within a time."""

import threading
from typing import Any, List

import pytest

from launch.errors import HostProblem, ProblemKind
from launch.logs import last_lines as tested
from launch.logs.last_lines import MOST_TASKS, chosen, last_lines
from tests.support.launch.fakes import FakeHost, fleet_of


def test_lines_are_cut_and_a_host_without_an_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def print_logs(fleet: Any, tasks: Any, say: Any, **options: Any) -> List[HostProblem]:
        assert options == {"raw": True, "tail": 100}
        say("ps:0@h1 " + "x" * 1000)
        return [HostProblem("h2", ProblemKind.UNREACHABLE, "no route")]

    monkeypatch.setattr(tested, "print_logs", print_logs)
    fleet = fleet_of({"h1": FakeHost("h1"), "h2": FakeHost("h2")})
    found = last_lines(fleet, fleet.spec.tasks)
    assert [len(line) for line in found["lines"]] == [300]
    assert found["missing"] == ["h2: no route"]


def test_hosts_that_go_on_sending_are_left_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()

    def print_logs(fleet: Any, tasks: Any, say: Any, **options: Any) -> List[HostProblem]:
        say("ps:0@h1 first")
        over.wait(30)
        return []

    monkeypatch.setattr(tested, "print_logs", print_logs)
    fleet = fleet_of({"h1": FakeHost("h1")})
    found = last_lines(fleet, fleet.spec.tasks, patience_s=0.1)
    over.set()
    assert found["lines"] == ["ps:0@h1 first"]
    assert found["missing"] == ["logs: expected every host's lines within 0.1 s, found hosts that still send"]


def test_of_many_tasks_the_chief_and_the_first_others_are_chosen() -> None:
    fleet = fleet_of({f"h{n}": FakeHost(f"h{n}") for n in range(1, 60)})
    tasks = chosen(fleet, [])
    assert len(tasks) == MOST_TASKS < len(fleet.spec.tasks) and tasks[0].name == fleet.spec.chief.name
    assert [task.host for task in chosen(fleet, ["h50"])] == ["h50"]
