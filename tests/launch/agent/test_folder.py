"""Where a run's files are, who may read them, and which run is the newest."""

import json
import stat
from pathlib import Path
from typing import List

import pytest

from launch.agent.folder import RunFolder, expand, runs


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def make_runs(workdir: Path, *names: str, host: str = "h") -> None:
    for name in names:
        RunFolder(workdir, name, host).create()


def found(workdir: Path, name: str, host: str = "h") -> List[str]:
    return [folder.run for folder in runs(workdir, name, host)]


def test_a_run_and_its_records_are_closed_to_other_users(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "w", "r-1", "h")
    folder.create()
    folder.write("plan.json", {"token": "x"})
    assert mode(folder.path) == 0o700
    assert mode(folder.own / "plan.json") == 0o600


def test_what_was_written_is_read_and_replaced_whole(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, "r-1", "h")
    folder.create()
    folder.write("status.json", {"state": "running", "long": "x" * 1000})
    folder.write("status.json", {"state": "failed"})
    assert folder.read("status.json") == {"state": "failed"}
    assert [path.name for path in folder.own.iterdir()] == ["status.json"]


def test_what_was_never_written_is_none(tmp_path: Path) -> None:
    assert RunFolder(tmp_path, "r-1", "h").read("status.json") is None


def test_two_hosts_with_one_home_folder_keep_their_files_apart(tmp_path: Path) -> None:
    make_runs(tmp_path, "r-1", host="a")
    make_runs(tmp_path, "r-1", host="b")
    RunFolder(tmp_path, "r-1", "a").write("plan.json", {"host": "a"})
    assert RunFolder(tmp_path, "r-1", "b").read("plan.json") is None


def test_the_same_run_is_not_created_twice_on_a_host(tmp_path: Path) -> None:
    make_runs(tmp_path, "r-1")
    with pytest.raises(FileExistsError):
        make_runs(tmp_path, "r-1")


def test_logs_are_in_the_order_of_their_attempts(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, "r-1", "h")
    folder.task("worker:1").mkdir(parents=True)
    for attempt in (10, 2, 0):
        folder.log("worker:1", attempt).write_text(json.dumps(attempt))
    assert [path.name for path in folder.logs("worker:1")] == ["attempt_0.log", "attempt_2.log", "attempt_10.log"]


def test_the_runs_of_a_name_are_newest_first_and_no_other_names_are_among_them(tmp_path: Path) -> None:
    make_runs(
        tmp_path, "a-20261120-155902", "a-20261121-000000", "a-20261120-160000", "a-b-20261122-000000", "a", "a-b"
    )
    assert found(tmp_path, "a") == ["a-20261121-000000", "a-20261120-160000", "a-20261120-155902"]
    assert found(tmp_path, "a-b") == ["a-b-20261122-000000"]


def test_a_name_that_ends_like_a_time_is_no_run_of_the_shorter_name(tmp_path: Path) -> None:
    make_runs(tmp_path, "a-20261120-155902-20261121-000000")
    assert found(tmp_path, "a") == []
    assert found(tmp_path, "a-20261120-155902") == ["a-20261120-155902-20261121-000000"]


def test_a_run_that_this_host_had_no_part_in_is_not_its_run(tmp_path: Path) -> None:
    make_runs(tmp_path, "a-20261120-155902", host="other")
    assert found(tmp_path, "a") == []


def test_where_nothing_ever_ran_there_are_no_runs(tmp_path: Path) -> None:
    assert found(tmp_path / "none", "a") == []


def test_a_working_folder_is_absolute_and_the_tilde_means_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    assert expand("~/.launch") == Path("/home/somebody/.launch")
    assert expand("/w/../v") == Path("/v")
