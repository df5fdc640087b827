"""Tasks of a test end with the test's process, however that one ends, and its ports are no other process's."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Iterator

import pytest

from launch.agent.linux.processes import inspect, is_same
from tests.support import ROOT
from tests.support.training.forks import ForkServer, end_servers
from tests.support.training.processes import Cluster
from tests.support.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.not_fast  # starts processes, by what it tests
STARTS = """
import sys, time
from pathlib import Path
from tests.support.training import processes
cluster = processes.Cluster(Path(sys.argv[1]), "polynomial", ps=1, workers=1)
cluster.start("ps", 0, {})  # waits for its chief
print(cluster.running["ps", 0].pid, flush=True)
time.sleep(1000)
"""


@pytest.fixture(scope="module", autouse=True)
def no_server_stays() -> Iterator[None]:
    """End the servers: tests of agents, which may follow in this process, count its children."""
    yield
    end_servers()


def test_a_killed_session_leaves_no_task(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", STARTS, str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=str(ROOT)) as session:
        assert session.stdout is not None
        task = inspect(int(session.stdout.readline()))
        session.send_signal(signal.SIGKILL)
        session.wait(PATIENCE_S)
    assert task is not None
    pid, start = task.pid, task.start
    eventually("the end of the task", lambda: not is_same(pid, start))


SHOWS = """
import json, os, sys
shown = [os.getppid(), hash("a"), dict(os.environ), os.getsid(0), sys.argv[1:], sys.stdin.read()]
print(json.dumps(shown), flush=True)
print("tensorflow" in sys.modules, file=sys.stderr)
sys.exit(3)
"""


def test_a_forked_task_has_its_own_environment_session_and_exit_code_and_two_servers_hash_differently(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shows.py").write_text(SHOWS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    servers = [ForkServer(), ForkServer()]
    monkeypatch.delenv("PYTHONPATH")
    parents, hashes = [], []
    for each in servers:
        log = tmp_path / "log"
        log.unlink() if log.exists() else None
        task = each.start("shows", ["--x", "é"], {"ONE": "1"}, str(log))
        assert task.wait(PATIENCE_S) == task.poll() == 3
        first, second = log.read_text().splitlines()
        parent, hashed, env, session, args, given = json.loads(first)
        assert second == "True" and session == task.pid and args == ["--x", "é"] and given == ""
        assert env["ONE"] == "1" and not {"PATH", "PYTHONPATH"} & set(env)  # TensorFlow sets others
        parents.append(parent)
        hashes.append(hashed)
    assert len(set(parents)) == len(set(hashes)) == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_forked_task_that_a_signal_ends_has_its_number(number: int, tmp_path: Path) -> None:
    with Cluster(tmp_path, "polynomial", ps=1, workers=0) as cluster:
        cluster.start("ps", 0, {})
        cluster.running["ps", 0].send_signal(number)
        assert cluster.exit_code("ps", 0) == -number
