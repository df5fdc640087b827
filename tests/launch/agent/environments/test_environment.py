"""An environment is used by many or changed by one, and is complete only when its last file was written."""

import os
import sys
import time
from pathlib import Path

import pytest

from launch.agent.environments.environment import UNUSED_S, Busy, Environment, environments, remove_unused


def ready(workdir: Path, name: str, unused_s: float = 0.0) -> Environment:
    """An environment that looks complete, last used so long ago."""
    environment = Environment(workdir, name)
    environment.python.parent.mkdir(parents=True)
    environment.python.symlink_to(sys.executable)
    environment.seal()
    then = time.time() - unused_s
    os.utime(str(environment.path / "ready"), (then, then))
    return environment


def test_one_without_its_last_file_is_not_ready(tmp_path: Path) -> None:
    environment = ready(tmp_path, "e")
    assert environment.is_ready()
    (environment.path / "ready").unlink()
    assert not environment.is_ready()


def test_one_whose_python_has_gone_or_become_another_version_is_not_ready(tmp_path: Path) -> None:
    gone, other = ready(tmp_path, "gone"), ready(tmp_path, "other")
    gone.python.unlink()
    gone.python.symlink_to("/nowhere/python")
    (other.path / "ready").write_text('{"python": "2.7"}')
    assert not gone.is_ready() and not other.is_ready()


def test_runs_share_it_and_whoever_changes_it_has_it_alone(tmp_path: Path) -> None:
    environment = ready(tmp_path, "e")
    used = environment.held
    with used(alone=False), used(alone=False), pytest.raises(Busy), environment.held(alone=True):
        raise AssertionError("changed while it is used")
    with environment.held(alone=True), pytest.raises(Busy), environment.held(alone=False):
        raise AssertionError("used while it is changed")


def test_what_no_run_has_used_for_a_month_is_removed_and_nothing_else(tmp_path: Path) -> None:
    old = ready(tmp_path, "old", UNUSED_S + 60)
    old.log.write_text("pip's")
    ready(tmp_path, "young", UNUSED_S - 60)
    ready(tmp_path, "asked", UNUSED_S + 60)
    used = ready(tmp_path, "used", UNUSED_S + 60)
    with used.held(alone=False):
        assert remove_unused(tmp_path, kept="asked") == ["old"]
    assert [environment.path.name for environment in environments(tmp_path)] == ["asked", "used", "young"]
    assert not old.log.exists() and not old.path.with_suffix(".lock").exists()


def test_a_lock_that_was_removed_while_one_waited_for_it_is_not_mistaken_for_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = ready(tmp_path, "e")
    really, opened = os.open, []

    def late(path: str, flags: int, mode: int = 0o777) -> int:
        handle = really(path, flags, mode)
        opened.append(path)
        if len(opened) == 1:
            os.unlink(path)  # as who removed the environment does, just then
        return handle

    monkeypatch.setattr(os, "open", late)
    with environment.held(alone=True):
        monkeypatch.undo()
        with pytest.raises(Busy), environment.held(alone=True):
            raise AssertionError("held twice")
    assert len(opened) == 2
