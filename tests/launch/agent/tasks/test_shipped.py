"""The launcher's code under a run: put back when it is purged, and kept young."""

import json
import os
import py_compile
import shutil
import time
from pathlib import Path
from typing import Dict

import pytest

from launch.agent.tasks.work_folder import LOOK_S, OLD_S, Shipped, fill, tidy


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code" / "HASH"
    for name in ("jobs/main.py", "launch/agent/__main__.py"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(name)
    (folder / "launch/agent/__main__.py").chmod(0o700)
    (folder / ".manifest").write_text(json.dumps({"jobs/main.py": [0o600], "launch/agent/__main__.py": [0o700]}))
    (tmp_path / "own").mkdir()
    for path in (folder / "jobs/main.py", folder / ".manifest"):
        path.chmod(0o600)
    return folder


def modes(code: Path) -> Dict[str, int]:
    return {str(path.relative_to(code)): path.stat().st_mode for path in code.rglob("*") if path.is_file()}


def shipped(code: Path, *tasks: Path) -> Shipped:
    return Shipped(code, code.parents[1] / "own", tasks)


def test_what_is_purged_is_put_back_as_it_was(code: Path) -> None:
    kept = shipped(code)
    before = modes(code)
    shutil.rmtree(str(code.parent))
    kept.restore()
    assert modes(code) == before and len(before) == 3
    assert (code / "jobs" / "main.py").read_text() == "jobs/main.py"


def test_what_is_as_it_was_sent_is_not_written_again_and_a_changed_byte_is_mended(code: Path) -> None:
    kept = shipped(code)
    same, changed = code / "jobs" / "main.py", code / "launch" / "agent" / "__main__.py"
    node = same.stat().st_ino
    changed.write_text(changed.read_text().replace("agent", "agenT"))
    kept.restore()
    assert same.stat().st_ino == node
    assert changed.read_text() == "launch/agent/__main__.py" and changed.stat().st_mode & 0o777 == 0o700


def test_bytecode_that_a_full_disk_has_cut_short_is_gone_before_a_task_starts(code: Path) -> None:
    kept = shipped(code)
    source = code / "jobs" / "one.py"
    source.write_text("x = 1\n")
    cut, whole, foreign = (code / "jobs" / "__pycache__" / f"{name}.pyc" for name in ("cut", "whole", "foreign"))
    py_compile.compile(str(source), str(whole))
    for turn in range(2):
        kept.restore()
        cut.write_bytes(whole.read_bytes()[: -5 - turn])
        foreign.write_bytes(b"....")  # of another Python
        kept.restore()
        assert not cut.exists() and whole.exists() and foreign.exists()


def test_files_of_a_run_that_are_older_than_a_day_become_young_and_others_keep_their_time(
    code: Path, tmp_path: Path
) -> None:
    fill(tmp_path / "task", code)
    (tmp_path / "own" / "plan.json").touch()
    old, young = time.time() - 2 * OLD_S, time.time() - OLD_S / 2
    for path, moment in ((code / "jobs/main.py", young), (tmp_path / "own/plan.json", old), (code / ".manifest", old)):
        os.utime(str(path), (moment, moment))
    os.utime(str(tmp_path / "task/work/jobs/main.py"), (old, old))
    kept = shipped(code, tmp_path / "task")
    kept.look(0.0)
    assert all(time.time() - path.stat().st_mtime < 60 for path in (code / ".manifest", tmp_path / "own/plan.json"))
    assert (code / "jobs/main.py").stat().st_mtime == pytest.approx(young)
    os.utime(str(code / ".manifest"), (old, old))
    kept.look(LOOK_S - 1)
    assert (code / ".manifest").stat().st_mtime == pytest.approx(old)  # not looked at yet
    kept.look(LOOK_S)
    assert (code / ".manifest").stat().st_mtime != pytest.approx(old)


def test_a_file_that_a_task_has_changed_stays_when_the_run_has_ended_although_its_times_were_renewed(
    code: Path, tmp_path: Path
) -> None:
    """The renewal gave it the time of its copy: a run of an hour lost each shipped file that its tasks had changed."""
    fill(tmp_path / "task", code)
    changed, kept = (tmp_path / "task/work" / name for name in ("jobs/main.py", "launch/agent/__main__.py"))
    changed.write_text("changed")
    os.utime(str(kept), ns=(0, kept.stat().st_mtime_ns))
    shipped(code, tmp_path / "task").look(0.0)
    assert time.time() - kept.stat().st_atime < 60
    tidy(tmp_path / "task")
    assert changed.read_text() == "changed" and not kept.exists()


def test_a_disk_that_takes_nothing_ends_no_run(code: Path) -> None:
    kept = shipped(code)
    shutil.rmtree(str(code))
    code.touch()
    kept.restore()
    kept.look(0.0)
