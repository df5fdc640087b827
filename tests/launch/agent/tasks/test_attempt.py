"""An attempt takes each signal once, in the order of what was asked for it."""

import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, List

import pytest

from launch.agent.endings.exits import HANG_S
from launch.agent.linux import processes
from launch.agent.state.run_folder import RunFolder
from launch.agent.tasks.attempt import Attempt
from launch.agent.tasks.host_tasks import HostTasks
from launch.agent.tasks.spawning import TaskShare
from tests.support.agent.requested import task_request
from tests.support.waiting import eventually


def attempt(**fields: Any) -> Attempt:
    nothing: Any = None
    return Attempt("worker:0", 0, nothing, nothing, nothing, **fields)


def test_without_a_wish_no_signal_comes() -> None:
    assert attempt().next_signal(1e9) is None


def test_term_comes_once_and_kill_once_when_the_grace_is_over() -> None:
    one = attempt()
    one.end_by(15.0, term=True)
    assert [one.next_signal(now) for now in (10.0, 14.9, 15.0, 16.0)] == [signal.SIGTERM, None, signal.SIGKILL, None]
    assert not one.hangs(15.0 + HANG_S - 0.1) and one.hangs(15.0 + HANG_S)


def test_the_earlier_of_two_deadlines_stands() -> None:
    one = attempt()
    one.end_by(15.0, term=True)
    one.end_by(60.0, term=True)
    one.next_signal(10.0)
    assert one.next_signal(15.0) is signal.SIGKILL


def test_without_grace_there_is_no_term() -> None:
    one = attempt()
    one.end_by(10.0, term=False)
    assert one.next_signal(10.0) is signal.SIGKILL


def test_an_attempt_that_has_written_its_stacks_is_killed_at_once() -> None:
    one = attempt(stacks=SimpleNamespace(are_written=lambda: True))
    one.end_by(60.0, term=False)
    assert one.next_signal(10.0) is signal.SIGKILL


@pytest.mark.not_fast
def test_the_process_table_is_read_once_for_all_tasks_that_are_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, folder = [f"worker:{index}" for index in range(4)], RunFolder(tmp_path, "r-20260101-000000", "h")
    folder.create()
    requests = [task_request(name, argv=["sleep", "60"], folder=str(tmp_path)) for name in names]
    tasks = HostTasks(requests, folder, TaskShare({name: [] for name in names}), lambda event: None, {})
    for name in names:
        tasks.start(name, 0)
    tasks.poll(0.0)
    reads: List[float] = []
    table = processes.table

    def counted() -> List[processes.Process]:
        reads.append(1.0)
        return table()

    monkeypatch.setattr(processes, "table", counted)
    tasks.stop_all(5.0, 0.0)
    tasks.poll(0.0)
    assert len(reads) == 1

    def all_ended() -> bool:
        tasks.poll(0.0)
        return not tasks.running

    eventually("the end of all", all_ended)
