"""Where a run's files are, and who may read them."""

import json
import stat
from pathlib import Path

import pytest

from launch.agent.state.run_folder import RunFolder, expand


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def make_runs(workdir: Path, *names: str, host: str = "h") -> None:
    for name in names:
        RunFolder(workdir, name, host).create()


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


def test_a_working_folder_is_absolute_and_the_tilde_means_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    assert expand("~/.launch") == Path("/home/somebody/.launch")
    assert expand("/w/../v") == Path("/v")
