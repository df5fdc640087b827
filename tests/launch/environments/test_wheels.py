"""Of a wheel folder those files count that the lock names, by their content."""

from pathlib import Path

import pytest

from launch.environments.identity import files_of, read_lock
from launch.errors import UsageError
from tests.support.launch.tiny_wheels import tiny_wheel


def test_only_what_the_lock_names_is_sent_whatever_it_is_called(tmp_path: Path) -> None:
    named, _ = tiny_wheel(tmp_path / "w", "named"), tiny_wheel(tmp_path / "w", "other")
    (tmp_path / "w" / "notes.txt").write_text("not a package")
    (tmp_path / "my.lock").write_text(named)
    lock = read_lock(tmp_path / "my.lock")
    assert files_of(tmp_path / "w", {lock}) == {next(iter(lock.hashes)): tmp_path / "w" / "named-1.0-py3-none-any.whl"}


def test_a_file_that_was_changed_since_is_not_the_one_that_the_lock_names(tmp_path: Path) -> None:
    (tmp_path / "my.lock").write_text(tiny_wheel(tmp_path / "w", "named"))
    (tmp_path / "w" / "named-1.0-py3-none-any.whl").write_bytes(b"other")
    with pytest.raises(UsageError, match=r"my\.lock in .*/w, found none among its 1 packages; fetch them with"):
        files_of(tmp_path / "w", {read_lock(tmp_path / "my.lock")})


def test_a_folder_that_is_not_there_is_refused_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "my.lock").write_text(tiny_wheel(tmp_path / "w", "named"))
    with pytest.raises(UsageError, match=r"expected a folder of wheels at .*/none, found: No such file"):
        files_of(tmp_path / "none", {read_lock(tmp_path / "my.lock")})
