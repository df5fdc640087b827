"""A run that version 0.1.0 has started is seen and ended whole by the present one, and the other way round.

launch-0.1.0.tar.xz has ``cluster`` and ``launch`` of the commit 83fe980.
"""

import json
import signal
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Iterator, List

import pytest

from launch.agent.linux.processes import Process, signal_process
from launch.agent.state import process_records
from launch.agent.state.run_folder import RunFolder
from tests.support import ROOT
from tests.support.launch.launcher import Launcher
from tests.support.waiting import PATIENCE_S, eventually


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of version 0.1.0."""
    folder = tmp_path_factory.mktemp("old")
    with tarfile.open(str(Path(__file__).with_name("launch-0.1.0.tar.xz"))) as archive:
        archive.extractall(str(folder))
    return folder


@pytest.fixture(params=["old", "new"])
def versions(request: pytest.FixtureRequest, old: Path) -> List[Path]:
    """Return the folders of the version that starts the run, and of the one that ends it."""
    return [old, ROOT] if request.param == "old" else [ROOT, old]


@pytest.fixture
def run(launch: Launcher, versions: List[Path]) -> Iterator[Launcher]:
    """Start a run that goes on until it is ended."""
    launch.stay()
    run_by(versions[0], launch, "up", "-d")
    yield launch
    launch.end()


def run_by(folder: Path, launch: Launcher, verb: str, *arguments: str) -> str:
    """Run a verb of the launcher in ``folder`` to its end, and return what it prints."""
    ran = subprocess.run(
        [sys.executable, "-m", "launch", verb, str(launch.file), *arguments], cwd=str(folder), capture_output=True,
        stdin=subprocess.DEVNULL, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr + ran.stdout
    return ran.stdout


def agents(launch: Launcher) -> List[Process]:
    """Return the run's keeper and its agent, if they live."""
    (folder,) = launch.workdir.glob("runs/*/hosts/*")
    return process_records.keeper_and_agent(RunFolder(launch.workdir, launch.run_folder().name, folder.name))


def test_a_live_run_is_seen_and_ended_in_order_by_the_other_version(run: Launcher, versions: List[Path]) -> None:
    status = json.loads(run_by(versions[1], run, "status", "--json"))
    assert [(task["state"], task["restarts"]) for task in status["tasks"]] == [("running", 0)] * 3
    run_by(versions[1], run, "down")
    assert sorted(run.order.read_text().split()) == ["ps:0", "worker:0", "worker:1"]
    assert run.left() == []


def test_what_a_killed_agent_has_left_is_ended_by_the_other_version(run: Launcher, versions: List[Path]) -> None:
    found = agents(run)
    assert len(found) == 2
    for each in found:
        signal_process(each.pid, each.start, signal.SIGKILL)
    eventually("no agent", lambda: not agents(run))
    run_by(versions[1], run, "down")
    assert run.left() == []
