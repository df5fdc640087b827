"""A lock on a file is one holder's, and where there are no locks, it is said with what to do."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from launch.agent.linux import file_lock
from launch.agent.state import locks
from launch.agent.state.run_folder import lock_path


@pytest.fixture(params=[errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def lockless(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """A file system without locks says so in one of these ways."""

    def flock(handle: int, kind: int) -> None:
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(fcntl, "flock", flock)
    return int(request.param)


def test_a_lock_is_one_holders_who_says_who_it_is(tmp_path: Path) -> None:
    handle = file_lock.take(tmp_path / "a.lock")
    os.write(handle, b"me")
    with pytest.raises(file_lock.LockHeld, match="me"):
        file_lock.take(tmp_path / "a.lock")
    assert file_lock.held_by(tmp_path / "a.lock") == "me"
    os.close(handle)
    assert file_lock.held_by(tmp_path / "a.lock") is None
    assert file_lock.held_by(tmp_path / "none.lock") is None


def test_where_there_are_no_locks_the_folder_is_named_with_what_to_do_and_nothing_stays(
    tmp_path: Path, lockless: int
) -> None:
    with pytest.raises(file_lock.NoLocks) as caught:
        file_lock.take(tmp_path / "a.lock")
    assert str(caught.value) == (
        f"{tmp_path}: expected a file system with locks, found one without (flock: {os.strerror(lockless)}); set the "
        "key workdir to a folder on a local disk, or mount the file system with locks (Lustre: -o flock)"
    )
    assert list(tmp_path.iterdir()) == []


def test_where_there_are_no_locks_nobody_holds_the_name_of_a_run(tmp_path: Path, lockless: int) -> None:
    path = lock_path(tmp_path, "r", "h")
    path.parent.mkdir(parents=True)
    path.write_text('{"run": "r-1", "pid": 7}')
    assert locks.lock_holder(tmp_path, "r", "h") is None
