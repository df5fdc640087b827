"""The folder for temporary files of an attempt: short, its own, on record, and gone with it whatever lies in it."""

import os
import tempfile
from pathlib import Path
from typing import Iterator

import pytest

from launch.agent.state import temporary
from launch.agent.state.run_folder import RunFolder
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of this host for temporary files, whose path is short."""
    with tempfile.TemporaryDirectory(prefix="t", dir="/tmp") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


@pytest.fixture
def task(tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / "r-1" / "worker.0"
    folder.mkdir(parents=True)
    return folder


def made(task: Path, attempt: int = 0) -> Path:
    path = temporary.make(task, attempt)
    assert path is not None
    return Path(path)


def test_a_folder_is_closed_to_others_short_and_on_record(task: Path, host: Path) -> None:
    first, second = made(task, 0), made(task, 1)
    assert first.parent == second.parent == host and first != second
    assert first.stat().st_mode & 0o777 == 0o700
    assert [os.readlink(str(task / f"attempt_{number}.tmp")) for number in range(2)] == [str(first), str(second)]


def test_an_ended_attempt_takes_its_folder_along_and_no_other(task: Path) -> None:
    first, second = made(task, 0), made(task, 1)
    (first / "tmpa1b2.py").touch()
    temporary.forget(task, 0)
    eventually("its link gone", lambda: not os.path.lexists(str(task / "attempt_0.tmp")))
    assert not first.exists() and second.exists()


def test_what_a_task_has_closed_is_opened_and_links_in_it_are_not_followed(task: Path, tmp_path: Path) -> None:
    path, other = made(task), tmp_path / "other"
    other.mkdir(mode=0o500)
    (path / "a" / "b").mkdir(parents=True)
    (path / "link").symlink_to(other)
    for closed in (path / "a" / "b", path / "a"):
        closed.chmod(0o000)
    temporary.remove(task / "attempt_0.tmp")
    assert not path.exists() and other.stat().st_mode & 0o777 == 0o500


@pytest.mark.parametrize("named", ["notes", "launch-0000000", "launch-00000000x"])
def test_a_folder_that_no_attempt_was_given_is_not_removed(task: Path, host: Path, named: str) -> None:
    (host / named).mkdir()
    (task / "attempt_0.tmp").symlink_to(host / named)
    temporary.remove(task / "attempt_0.tmp")
    assert (host / named).exists()


def test_a_link_or_file_in_the_place_of_the_folder_stays(task: Path, host: Path) -> None:
    (host / "mine").mkdir()
    (host / "launch-00000000").symlink_to(host / "mine")
    (task / "attempt_0.tmp").symlink_to(host / "launch-00000000")
    temporary.remove(task / "attempt_0.tmp")
    assert (host / "launch-00000000").is_symlink() and (host / "mine").exists()


def test_of_a_run_only_this_hosts_tasks_are_cleaned(tmp_path: Path, task: Path) -> None:
    folder = RunFolder(tmp_path, "r-1", "h")
    folder.create(again=True)
    folder.write("plan.json", {"name": "r", "tasks": [{"name": "worker:0"}]})
    other = task.with_name("worker.1")
    other.mkdir()
    own, elsewhere = made(task), made(other)
    assert temporary.left(folder) == [str(own)]
    temporary.remove_left(folder)
    assert temporary.left(folder) == [] and elsewhere.exists()


def test_a_long_path_that_would_break_programs_sockets_is_not_used(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 80)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    assert temporary.make(task, 0) is None
    assert not os.path.lexists(str(task / "attempt_0.tmp")) and not list(long.iterdir())


def test_what_stays_is_a_line_of_the_log_and_none_of_a_verbs_answers(
    task: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    path = made(task)
    monkeypatch.setattr(temporary, "mounts_in", lambda folder: [f"{folder}/m"])
    temporary.remove(task / "attempt_0.tmp")
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("", f"cannot remove {path}: {path}/m is a mount\n") and path.exists()


def test_a_folder_stays_whose_mounts_cannot_be_listed(
    task: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def unreadable(folder: Path) -> None:
        raise OSError("no mountinfo")

    path = made(task)
    monkeypatch.setattr(temporary, "mounts_in", unreadable)
    temporary.remove(task / "attempt_0.tmp")
    assert capfd.readouterr().err == f"cannot remove {path}: no mountinfo\n" and path.exists()
