"""A disk that takes nothing refuses a start with a reason, at each write; a task that starts loses its log alone."""

import errno
import os
from pathlib import Path
from typing import Any, Mapping

import pytest

from cluster.protocol.shared_files import NotRegular
from launch.agent.linux import file_lock, processes
from launch.agent.linux.processes import Process
from launch.agent.service.preparation import NotReady, _record
from launch.agent.state import locks, process_records
from launch.agent.state.run_folder import RunFolder
from tests.support.agent.requested import RUN, run_request


@pytest.fixture(name="folder")
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = RunFolder(tmp_path, RUN, "h")
    folder.create()
    return folder


def record(folder: RunFolder, monkeypatch: pytest.MonkeyPatch, failing: int) -> int:
    """Let an agent record its start on a disk that refuses one write; return the number of its writes."""
    write, written = RunFolder.write, []

    def refuse(self: RunFolder, name: str, values: Mapping[str, Any], durable: bool = False) -> None:
        written.append(name)
        if len(written) == failing:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        write(self, name, values, durable)

    monkeypatch.setattr(RunFolder, "write", refuse)
    request = run_request(workdir=str(folder.workdir), run=RUN, generation=7, returns=True, again=True)
    _record(request, request, folder, Process(os.getppid(), 1, 1, 1, "S", 1))
    return len(written)


def test_each_record_of_a_start_is_needed(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    count = record(folder, monkeypatch, failing=0)
    monkeypatch.undo()
    monkeypatch.setenv("HOME", str(folder.workdir / "home"))
    assert count == 4 and process_records.is_of_this_boot(folder)
    for failing in range(1, count + 1):
        (folder.own / "plan.json").unlink()
        with pytest.raises(NotReady, match=r"cannot write in .*: Read-only file system"):
            record(folder, monkeypatch, failing)
        monkeypatch.undo()
        monkeypatch.setenv("HOME", str(folder.workdir / "home"))
        folder.write("plan.json", {})


def test_a_name_that_cannot_be_locked_has_a_reason(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(file_lock, "take", refuse)
    why = "expected a folder to write in, found: Read-only file system"
    with pytest.raises(file_lock.NoLocks, match=why), locks.hold(folder, "r", "r.yaml"):
        pass


def test_a_name_is_held_without_a_text_on_a_full_disk(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(handle: int, size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "ftruncate", refuse)
    taken = pytest.raises(locks.NameTaken, match="another run of this name")
    with locks.hold(folder, "r", "r.yaml"), taken, locks.hold(folder, "r", "r.yaml"):
        pass


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS])
def test_a_task_starts_without_a_log_where_the_disk_takes_none(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(processes, "open_to_append", refuse)
    assert processes.start(["true"], {}, tmp_path, tmp_path / "log").wait() == 0


def test_a_log_that_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotRegular):
        processes.start(["true"], {}, tmp_path, tmp_path)
