"""A run's processes are known by pid and start time, whatever session they are in and whoever looks like them."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Callable, Iterator, Set

import pytest

from launch.agent.linux.processes import Process, descendants, inspect, table
from launch.agent.state import plan_file, process_records
from launch.agent.state.run_folder import RunFolder
from tests.support.waiting import eventually

Start = Callable[..., int]


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "w", "r-20261120-120000", "h")
    folder.create()
    return folder


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a task's leader, a session of its own, with the environment of the run."""
    begun = []

    def begin(script: str, run: str = "r-20261120-120000", **more: str) -> int:
        env = {**os.environ, "LAUNCH_RUN": run, **more}
        begun.append(subprocess.Popen(["sh", "-c", script], start_new_session=True, env=env, cwd=str(tmp_path)))
        return begun[-1].pid

    yield begin
    for process in begun:
        process.kill()
        process.wait()


def pids_of(folder: RunFolder) -> Set[int]:
    return {process.pid for process in process_records.tasks_of(folder)}


def written(path: Path) -> int:
    return int(eventually(f"a pid in {path}", lambda: path.exists() and path.read_text()))


def test_a_leader_is_on_record_as_soon_as_it_was_started(folder: RunFolder, start: Start) -> None:
    leader = start("exec sleep 60")
    process_records.ProcessRecord(folder, os.getpid()).began(leader)
    assert pids_of(folder) == {leader}


def test_a_descendant_is_noted_though_it_left_the_session_and_gave_its_environment_up(
    folder: RunFolder, start: Start, tmp_path: Path
) -> None:
    leader = start("setsid env -i sh -c 'echo $$ > left; exec sleep 60' & wait")
    left = written(tmp_path / "left")
    record = process_records.ProcessRecord(folder, os.getpid())
    record.began(leader)
    record.note(table())
    assert pids_of(folder) == {leader, left}
    os.kill(left, 9)


def test_a_child_that_is_younger_than_the_last_note_is_known_by_its_session(
    folder: RunFolder, start: Start, tmp_path: Path
) -> None:
    leader = start(f"while test ! -e go; do {sys.executable} -c pass; done; sleep 60 & echo $! > child; wait")
    process_records.ProcessRecord(folder, os.getpid()).began(leader)
    (tmp_path / "go").touch()
    child = written(tmp_path / "child")
    assert pids_of(folder) == {leader, child}
    os.kill(child, 9)


def escaped(folder: RunFolder, task: str, start: Start, tmp_path: Path) -> Set[int]:
    """The pids of a child, and of its own child without an environment; nothing else of their task is left."""
    go, pids = tmp_path / f"go-{task}", tmp_path / f"pids-{task}"
    child = f"setsid sh -c 'env -i sleep 60 & echo $! $$ > {pids}; wait'"
    waits = f"while test ! -e {go}; do {sys.executable} -c pass; done"
    leader = start(f"{waits}; {child} & wait", LAUNCH_TASK_DIR=str(folder.task(task)))
    folder.write(plan_file.PLAN, {"tasks": [{"name": task}]})
    process_records.ProcessRecord(folder, os.getpid()).began(leader)
    go.touch()
    found = eventually(f"pids in {pids}", lambda: pids.exists() and pids.read_text())
    os.kill(leader, 9)
    return {*map(int, found.split())}


def test_a_child_that_left_its_session_since_the_last_note_is_known_by_the_folder_of_its_task(
    folder: RunFolder, start: Start, tmp_path: Path
) -> None:
    other = RunFolder(folder.workdir, folder.run, "another-host-here")
    other.create()
    left = [escaped(folder, "worker:0", start, tmp_path), escaped(other, "worker:1", start, tmp_path)]
    (tmp_path / "link").symlink_to(folder.workdir)
    linked = RunFolder(tmp_path / "link", folder.run, folder.host)
    assert [pids_of(each) for each in (folder, other, linked)] == [*left, left[0]]
    for pid in set().union(*left):
        os.kill(pid, 9)


def test_a_session_of_another_run_that_got_a_recorded_number_is_not_the_runs(folder: RunFolder, start: Start) -> None:
    stranger = start("exec sleep 60", "another-20261120-120000")
    other = inspect(stranger)
    assert other is not None
    old = [{"pid": stranger, "start": other.start - 1}]
    folder.write(process_records.TASKS, {"boot": process_records.boot(), "leaders": old, "others": []})
    assert pids_of(folder) == set()


def test_what_was_never_recorded_has_no_processes(folder: RunFolder) -> None:
    assert (process_records.tasks_of(folder), process_records.agent_of(folder)) == ([], [])


def test_a_record_is_written_when_it_changes_and_not_oftener(folder: RunFolder, start: Start) -> None:
    record = process_records.ProcessRecord(folder, os.getpid())
    record.began(start("exec sleep 60"))
    record.note(table())
    (folder.own / process_records.TASKS).unlink()
    record.note(table())
    assert folder.read(process_records.TASKS) is None


def test_a_disk_that_is_full_does_not_end_the_record(
    folder: RunFolder, start: Start, capsys: "pytest.CaptureFixture[str]"
) -> None:
    (folder.own / f".{process_records.TASKS}.partial").mkdir()  # what is written now cannot be written
    record = process_records.ProcessRecord(folder, os.getpid())
    for _ in range(3):
        record.began(start("exec sleep 60"))
    assert capsys.readouterr().err.count("cannot write") == 1
    (folder.own / f".{process_records.TASKS}.partial").rmdir()
    record.note(table())
    assert len(pids_of(folder)) == 3


def test_descendants_are_found_at_any_depth_and_the_dead_are_none() -> None:
    processes = [Process(2, 1, 2, 2, "S", 5), Process(3, 2, 3, 3, "Z", 6), Process(4, 3, 4, 4, "S", 7),
             Process(9, 8, 9, 9, "S", 5)]  # fmt: skip
    assert [process.pid for process in descendants(processes, 1)] == [2, 4]
