"""A run trains in containers of the real podman: a task is killed, then the agent, and nothing is left."""

import os
import signal
from typing import Iterator

import pytest

from launch.agent.linux import processes
from launch.agent.state import process_records
from launch.agent.state.run_folder import RunFolder
from launch.teardown import NOTHING_LEFT
from tests.support.containers.podman import Podman
from tests.support.launch.launcher import Launcher
from tests.support.waiting import eventually

pytestmark = pytest.mark.not_fast  # trains in containers


@pytest.fixture
def podman(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Podman]:
    found = Podman(tmp_path_factory.mktemp("podman"), monkeypatch)
    yield found
    found.end()


def test_a_run_trains_in_containers_heals_and_leaves_nothing(launch: Launcher, podman: Podman) -> None:
    ps, worker, _ = (f"localhost:{port}" for port in launch.ports)
    launch.write(
        command=None, job="polynomial", cluster={"ps": [ps], "worker": [worker]}, container=podman.key(),
        train={"steps": 1_000_000, "batch_size": 8, "towers": 1, "checkpoint": {"every_s": 1}},
        restart={"max": 3, "backoff_s": 0.1}, env={"all": {"NOTE": "a $$HOME"}},
    )  # fmt: skip
    checked = launch("check")
    assert checked.returncode == 0, checked.stdout
    assert launch("up", "-d").returncode == 0
    assert len(podman.names) == 2
    first = _pid(launch, "worker")
    assert processes.environment(first)["NOTE"] == "a $HOME"
    os.kill(first, signal.SIGKILL)
    eventually("the second attempt", lambda: [_step(launch), launch.status()["tasks"][1]["restarts"]] > [0, 0])
    eventually("its container", lambda: any(".worker.0.1." in name for name in podman.names))
    assert len(podman.names) == 2  # that of the first attempt was removed before
    agent = process_records.agent_of(RunFolder(launch.workdir, launch.run_folder().name, "localhost"))
    os.kill(agent[0].pid, signal.SIGKILL)
    eventually("no container of that agent", lambda: not [name for name in podman.names if f".{agent[0].pid}." in name])
    down = launch("down")
    assert down.returncode == 0 and NOTHING_LEFT in down.stdout
    assert podman.names == launch.left() == []


def _pid(launch: Launcher, role: str) -> int:
    """Return the pid of the process with which a task's container began."""
    mark = f".{role}.0."
    found = (p.pid for p in processes.table() if mark in processes.environment(p.pid).get("LAUNCH_CONTAINER", ""))
    return next(found)


def _step(launch: Launcher) -> int:
    return launch.status()["global_step"] or 0
