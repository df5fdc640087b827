"""The unit that starts an agent after a boot: what it says, when there is one, and that it goes."""

import configparser
import json
import os
import pwd
import shutil
import subprocess
from pathlib import Path
from typing import Any, Dict

import pytest

from launch.agent.state import boot_unit
from launch.agent.state.run_folder import RunFolder
from tests.support.agent.requested import run_request


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    """A run's folder on a host whose user has an empty home."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    made = RunFolder(tmp_path / "100% of $HOME", "r-20261120-120000", "gpu 01")
    made.create()
    return made


@pytest.fixture
def lingers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file by which this user lingers on a machine with systemd."""
    monkeypatch.setattr(boot_unit, "BOOTED", tmp_path)
    monkeypatch.setattr(boot_unit, "LINGERING", tmp_path)
    user = pwd.getpwuid(os.getuid()).pw_name
    (tmp_path / user).touch()
    monkeypatch.setattr(boot_unit, "MANAGERS", tmp_path)
    (tmp_path / str(os.getuid()) / "systemd").mkdir(parents=True)
    return tmp_path / user


def test_a_user_who_lingers_on_a_machine_with_systemd_has_agents_started(lingers: Path) -> None:
    assert boot_unit.obstacle() is None


def test_what_is_in_the_way_is_named(lingers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boot_unit, "MANAGERS", lingers)
    assert boot_unit.obstacle() == f"systemd has no manager for {lingers.name} there"
    lingers.unlink()
    assert boot_unit.obstacle() == f"{lingers.name} does not linger there (`loginctl enable-linger`)"
    monkeypatch.setattr(boot_unit, "BOOTED", lingers)
    assert boot_unit.obstacle() == "has no systemd"


def test_the_unit_is_there_from_the_next_boot_on_and_closed_to_others(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODULES", "a\nb")
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.1 22")
    boot_unit.write(folder, run_request(run=folder.run))
    boot_unit.write(folder, run_request(run=folder.run))  # as an agent does that takes the place of another
    link, unit, kept = boot_unit.files(folder)
    assert link.parent.name == "default.target.wants" and link.resolve() == unit.resolve()
    assert unit.name == "launch-r-20261120-120000.gpu_01.service"
    assert kept.stat().st_mode & 0o777 == 0o600
    values: Dict[str, Any] = json.loads(kept.read_text())
    assert values["request"]["run"] == folder.run and values["environment"]["MODULES"] == "a\nb"
    assert "SSH_CONNECTION" not in values["environment"]


def test_the_unit_goes_whatever_is_left_of_it(folder: RunFolder) -> None:
    boot_unit.write(folder, run_request())
    link, unit, _ = boot_unit.files(folder)
    unit.unlink()
    boot_unit.remove(folder)
    assert boot_unit.files(folder) == [] and not os.path.lexists(str(link))
    boot_unit.remove(folder)


def test_the_unit_is_of_this_machine_alone_and_its_words_stay_as_they_are(folder: RunFolder) -> None:
    text = boot_unit.text(folder, Path("/w/code/0 1"), {"LD_LIBRARY_PATH": "/opt/a b:$X%", "OTHER": "x"})
    unit = configparser.RawConfigParser(strict=True)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text)
    assert unit["Unit"]["ConditionHost"] == os.uname().nodename
    assert unit["Service"]["WorkingDirectory"] == "/w/code/0 1"
    assert unit["Service"]["Environment"] == '"LD_LIBRARY_PATH=/opt/a b:$X%%"' and "OTHER" not in text
    assert unit["Service"]["ExecStart"].endswith('/hosts/gpu 01"') and "100%% of $$HOME" in unit["Service"]["ExecStart"]


@pytest.mark.not_fast
def test_systemd_takes_the_unit_as_it_is(folder: RunFolder, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd: this machine lacks systemd-analyze (apt-get install systemd)")
    boot_unit.write(folder, run_request())
    _, unit, _ = boot_unit.files(folder)
    runtime = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "SYSTEMD_LOG_LEVEL": "info"}
    told = subprocess.run(
        ["systemd-analyze", "verify", "--user", str(unit)], env=runtime, timeout=30, capture_output=True, text=True
    )
    assert unit.name not in told.stderr, told.stderr


@pytest.mark.parametrize(
    "state, going", [("running", False), ("degraded", False), ("stopping", True), ("offline", True)]
)
def test_a_machine_that_stops_says_so(state: str, going: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "systemctl"
    program.write_text(f"#!/bin/sh\necho {state}; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert boot_unit.is_going_down() is going


def test_where_nobody_answers_the_marks_of_a_shutdown_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for marks, going in (((), False), ((tmp_path,), True)):
        monkeypatch.setattr(boot_unit, "GOING_DOWN", marks)
        assert boot_unit.is_going_down() is going
