"""The facts of this host: whole where all is well, and what they are worth on a machine in trouble."""

import os
import sys
import threading
from pathlib import Path
from typing import Any, Dict

import pytest

from cluster.protocol.typed_json import from_values
from launch.agent import facts
from launch.agent.facts import pieces
from launch.agent.wire.host_facts import Disk, FactsRequest, Failed, Gap, HostFacts

pytestmark = pytest.mark.not_fast  # they start a Python, and ask for GPUs


def collected(request: FactsRequest, within_s: float) -> HostFacts:
    """The facts, as a host that answers in time sends them."""
    found: Dict[str, Any] = {"versions": None, "gpus": None, "disks": {}, "gaps": [], "clock": None}
    for piece in pieces(facts.sections(request, within_s), within_s):
        if isinstance(piece, Gap):
            found["gaps"].append(vars(piece))
        else:
            found[piece[0]] = {**found[piece[0]], **piece[1]} if piece[0] == "disks" else piece[1]
    return from_values(HostFacts, found)


def asked(folder: Path, trial: bool, **changed: Any) -> FactsRequest:
    """What is asked of a host whose tasks run in this Python."""
    values = {"workdir": str(folder), "python": sys.executable, "environment": None, "env": {}, **changed}
    return FactsRequest(**{"folders": (str(folder),), **values}, trial=trial)


def test_before_a_start_modules_are_imported_and_later_only_listed(tmp_path: Path) -> None:
    for name in ("numpy", "tensorflow"):
        (tmp_path / f"{name}.py").write_text("__version__ = '9.9'")
    env = {"PYTHONPATH": str(tmp_path)}
    tried = collected(asked(tmp_path, trial=True, env=env), 60.0)
    assert (tried.version_of("numpy"), tried.version_of("tensorflow"), tried.gaps) == ("9.9", "9.9", [])
    assert tried.version_of("python") == sys.version.split()[0]
    listed = collected(asked(tmp_path, trial=False, env=env), 60.0).versions
    assert listed is not None and listed.numpy is None and listed.packages and "pytest" in listed.packages


def test_an_environment_that_was_not_built_is_not_ready(tmp_path: Path) -> None:
    versions = collected(asked(tmp_path, trial=True, environment="0" * 16), 60.0).versions
    assert versions is not None and not versions.environment_ready and isinstance(versions.python, Failed)


def test_a_file_server_that_hangs_costs_its_own_disk_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    over, real = threading.Event(), os.statvfs

    def hangs(place: str) -> Any:
        return over.wait(60) if place == str(tmp_path) else real(place)

    monkeypatch.setattr("os.statvfs", hangs)
    request = asked(tmp_path, trial=True, python="/nowhere/python", folders=("/tmp", str(tmp_path)))
    facts = collected(request, 3.0)
    over.set()
    assert facts.gaps == [Gap(f"disk {tmp_path}", "not done within 3 s", late=True)]
    assert list(facts.disks) == ["/tmp"] and facts.versions is not None and facts.gpus is not None


def test_a_driver_that_hangs_costs_the_gpus_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(facts, "driver_and_gpus", lambda: over.wait(60))
    found = collected(asked(tmp_path, trial=True, python="/nowhere/python"), 3.0)
    over.set()
    assert [gap.section for gap in found.gaps] == ["gpus"] and found.gpus is None
    assert isinstance(found.disks[str(tmp_path)], Disk)


def test_a_folder_that_is_not_there_yet_is_as_good_as_the_one_it_will_be_in(tmp_path: Path) -> None:
    state = facts.disk(tmp_path / "not" / "there", trial=True, with_locks=True)
    assert isinstance(state, Disk) and state.free_bytes > 0 and not state.is_there
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_takes_nothing_is_told_with_the_reason() -> None:
    assert isinstance(facts.disk(Path("/proc/1"), trial=True), Failed)


def test_nothing_is_written_where_no_run_is_to_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: pytest.fail("a sample was written"))
    assert isinstance(facts.disk(tmp_path), Disk)
