"""A folder goes at once for everybody who looks; a half of it is never met, and no link is followed."""

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, List

import pytest

from launch.agent.retention import pruning
from launch.agent.retention.measure import measure


def full(folder: Path) -> Path:
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "file").write_text("x")
    return folder


def test_a_hidden_folder_is_gone_from_its_place_and_its_rest_can_be_removed_later(tmp_path: Path) -> None:
    rest = pruning.hide(full(tmp_path / "run"))
    assert not (tmp_path / "run").exists() and pruning.remainders(tmp_path) == [rest]
    assert pruning.remove(rest) is None and not list(tmp_path.iterdir())
    assert pruning.remove(rest) is None  # which another host that shares the folder has done


def test_what_a_killed_removal_left_is_found_and_removed(tmp_path: Path) -> None:
    rest = pruning.hide(full(tmp_path / "run"))
    (rest / "a" / "b" / "file").unlink()
    assert [pruning.remove(each) for each in pruning.remainders(tmp_path)] == [None]
    assert not list(tmp_path.iterdir())


def test_links_go_and_what_they_lead_to_stays(tmp_path: Path) -> None:
    kept = full(tmp_path / "kept")
    kept.chmod(0o500)
    run = full(tmp_path / "run")
    (run / "folder").symlink_to(kept)
    (run / "a" / "file").symlink_to(kept / "a" / "b" / "file")
    assert pruning.remove(pruning.hide(run)) is None
    assert (kept / "a" / "b" / "file").read_text() == "x" and kept.stat().st_mode & 0o777 == 0o500
    kept.chmod(0o700)


def test_a_link_in_the_place_of_a_rest_is_left_alone(tmp_path: Path) -> None:
    kept = full(tmp_path / "kept")
    (tmp_path / f"{pruning.REMOVED}x").symlink_to(kept)
    (rest,) = pruning.remainders(tmp_path)
    assert pruning.remove(rest) == f"{rest}: expected a folder, found a link" and (kept / "a" / "b" / "file").exists()


def test_a_folder_that_a_task_has_closed_is_opened_and_goes_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: List[int] = []
    run = full(tmp_path / "run")
    os.chmod(str(run / "a" / "b"), 0o000)
    os.chmod(str(run), 0o500)
    rest, really = pruning.hide(run), shutil.rmtree

    def note(path: str, **options: Any) -> None:  # root could remove them anyway
        modes.extend(os.stat(each).st_mode & 0o700 for each in (rest, rest / "a" / "b") if rest.exists())
        really(path, **options)

    monkeypatch.setattr(shutil, "rmtree", note)
    assert pruning.remove(rest) is None and not list(tmp_path.iterdir()) and modes == [0o700, 0o700]


def test_what_cannot_be_removed_is_named_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rest = pruning.hide(full(tmp_path / "run"))

    def refuse(path: str, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            raise PermissionError(1, "Operation not permitted", "file")

    monkeypatch.setattr(shutil, "rmtree", refuse)
    assert pruning.remove(rest) == "file: Operation not permitted"


@pytest.mark.not_fast
@pytest.mark.skipif(os.getuid() != 0, reason="needs root: it mounts a folder")
def test_a_folder_of_the_same_disk_that_is_mounted_in_a_rest_is_not_emptied(tmp_path: Path) -> None:
    kept, run = full(tmp_path / "kept"), full(tmp_path / "run")
    point = run / "my data"
    point.mkdir()
    with mounted(kept, point):
        assert measure(run).mount == str(point)
        rest = pruning.hide(run)
        asked = pruning.remove(rest)
        assert asked == f"{rest}/my data: something is mounted there; unmount it with `umount '{rest}/my data'`"
        assert (kept / "a" / "b" / "file").exists() and (rest / "a" / "b" / "file").exists()
    assert pruning.remove(rest) is None and (kept / "a" / "b" / "file").exists()


@contextmanager
def mounted(folder: Path, point: Path) -> Iterator[None]:
    """A folder that is also at ``point``, wherever that has moved in the end."""
    subprocess.run(["mount", "--bind", str(folder), str(point)], check=True)
    try:
        yield
    finally:
        for each in (point, *point.parents[1].glob(f"{pruning.REMOVED}*/{point.name}")):
            subprocess.run(["umount", str(each)], stderr=subprocess.DEVNULL)
