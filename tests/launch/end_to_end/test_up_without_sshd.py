"""The verbs over SSH, on two hosts that are both this machine: their homes differ, and their SSH server is asyncssh."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterator, List

import pytest

from launch.agent.linux.processes import command_line
from launch.agent.linux.sockets import free_ports
from tests.support import ROOT
from tests.support.launch.laid_code import lay
from tests.support.launch.launcher import LAUNCH, run_here
from tests.support.launch.machine import left_in, living_under
from tests.support.ssh import HOST
from tests.support.ssh.hosts import ServerProcess, SshHosts
from tests.support.waiting import PATIENCE_S, eventually

if TYPE_CHECKING:
    Ended = subprocess.CompletedProcess[str]

ADDRESS = {"h1": "127.0.0.2", "h2": "127.0.0.3"}  # 127.0.0.1 would be this machine's own, which needs no SSH
TALK = "echo {role}:{index} in $HOME; test {role} = worker || exec sleep 1000"
STAY = "echo {role}:{index} is up; exec sleep 1000"


class Cluster:
    """The ps and a worker on h1, another worker on h2, which is reached through h1."""

    def __init__(self, hosts: SshHosts):
        self.hosts, self.folder, self.file = hosts, hosts.folder, hosts.folder / "r.yaml"
        self.h1 = hosts.add("h1")
        self.h2 = hosts.add("h2", "  ProxyJump h1\n")
        for host in (self.h1, self.h2):
            lay(host.home / ".launch")

    def write(self, script: str) -> None:
        """A hosts file whose tasks run a shell script."""
        # Both hosts are this machine. The lead's agent listens above the ports of h1, which h2 must not use then.
        on_h2, ps, on_h1, _ = free_ports(4)
        workers = [on_h1, on_h2]
        worker = [{"host": name, "address": ADDRESS[name], "port": port} for name, port in zip(ADDRESS, workers)]
        cluster = {"ps": [{**worker[0], "port": ps}], "worker": worker}
        keys = {"name": "r", "command": ["sh", "-c", script], "cluster": cluster, "python": sys.executable}
        self.file.write_text(json.dumps({**keys, "restart": {"max": 0}, "ssh": self.hosts.keys()}))

    def apart(self, verb: str, *arguments: str) -> "Ended":
        """A verb to its end, in a process of its own, which loads for two seconds."""
        return subprocess.run(
            [*LAUNCH, verb, str(self.file), *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            cwd=ROOT, timeout=PATIENCE_S, env={**os.environ, "SSH_AUTH_SOCK": ""},
        )  # fmt: skip

    def __call__(self, verb: str, *arguments: str) -> "Ended":
        """A verb to its end, in this process."""
        return run_here(verb, str(self.file), *arguments, SSH_AUTH_SOCK="")

    def train(self, job: str, *workers: str) -> Path:
        """Make the hosts file train one step of a job, in a folder of its own, which is returned."""
        keys = json.loads(self.file.read_text())
        del keys["command"]
        keys["cluster"]["worker"] = [each for each in keys["cluster"]["worker"] if each["host"] in workers]
        self.file.write_text(json.dumps({**keys, "job": "project/my_job.py", "train": {"steps": 1}}))
        (self.folder / "project").mkdir()
        (self.folder / "project" / "my_job.py").write_text(job)
        return self.folder / "project"

    def status(self) -> Dict[str, Any]:
        """``launch status --json``."""
        status: Dict[str, Any] = json.loads(self("status", "--json").stdout)
        return status

    def left(self) -> List[str]:
        """Locks, sockets and processes that are still there; not what ends with a connection to it."""
        eventually("the end of closed connections", lambda: not self._connected())
        return [*left_in(self.folder), *map(str, living_under(self.folder))]

    def _connected(self) -> List[str]:
        """What a launcher runs on a host through its connection."""
        lines = [command_line(process.pid) for process in living_under(self.folder)]
        return [line for line in lines if "io.FileIO" in line]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    server = ServerProcess()
    with SshHosts(tmp_path, server) as hosts:
        made = Cluster(hosts)
        yield made
        if made.left():
            made("down")
    server.close()


def states(status: Dict[str, Any]) -> List[str]:
    return [f"{task['role']}:{task['index']}@{task['host']} {task['state']}" for task in status["tasks"]]


def test_a_run_over_ssh_succeeds_its_logs_are_collected_and_nothing_is_left(cluster: Cluster) -> None:
    for host in (cluster.h1, cluster.h2):
        shutil.rmtree(str(host.home / ".launch"))  # the launcher's code is sent
    cluster.write(TALK)
    ended = cluster.apart("up")
    assert ended.returncode == 0, ended.stderr
    assert cluster.status()["state"] == "succeeded"
    logs = cluster("logs").stdout.splitlines()
    assert sorted(logs) == [
        f"ps:0@h1 ps:0 in {cluster.h1.home}",
        f"worker:0@h1 worker:0 in {cluster.h1.home}",
        f"worker:1@h2 worker:1 in {cluster.h2.home}",
    ]
    assert cluster.left() == []


def test_a_run_over_ssh_that_is_left_alone_is_found_and_ended(cluster: Cluster) -> None:
    cluster.write(STAY)
    ended = cluster("up", "-d")
    assert ended.returncode == 0, ended.stderr
    assert states(cluster.status()) == ["ps:0@h1 running", "worker:0@h1 running", "worker:1@h2 running"]
    down = cluster("down")
    assert down.returncode == 0, down.stderr
    assert states(cluster.status()) == ["ps:0@h1 stopped", "worker:0@h1 stopped", "worker:1@h2 stopped"]
    assert cluster.left() == []


def test_a_task_that_fails_over_ssh_is_named_with_its_host_and_last_line(cluster: Cluster) -> None:
    cluster.write("test {index} = 0 && exec sleep 1000; echo no such data; exit 7")
    ended = cluster("up")
    assert ended.returncode == 1, ended.stderr
    cause = ended.stdout.splitlines()[-1]
    assert cause.endswith(" failed: worker:1@h2: exit code 7; its last line: no such data")
    assert cluster.left() == []


def test_no_task_is_started_where_one_host_is_not_reached(cluster: Cluster) -> None:
    cluster.write(STAY)
    cluster.hosts.close(cluster.h2)
    ended = cluster("up")
    assert ended.returncode == 3, ended.stderr
    assert f"h2: the gateway cannot reach {HOST} port {cluster.h2.port} (" in ended.stderr
    assert cluster.left() == []


# -- the graph of a job is built before a task starts

FAILS_ONCE = """
import os
import tensorflow.compat.v1 as tf

if not os.path.exists(os.path.expanduser("~/mounted")):
    open(os.path.expanduser("~/mounted"), "w").close()
    raise OSError("no data here yet")

def inputs(task, args):
    return tf.data.Dataset.from_tensors({"x": 1.0}).repeat().batch(task.batch_size)

def model(x):
    return tf.square(tf.get_variable("w", []) * x - 1)

def optimizer(args):
    return tf.train.GradientDescentOptimizer(0.1)
"""


def test_a_mistake_in_a_job_starts_no_task_and_is_named_by_the_authors_file(cluster: Cluster) -> None:
    cluster.write(STAY)
    project = cluster.train("raise ValueError(open('data.csv').read())\n", "h1", "h2")
    (project / "data.csv").write_text("4711")
    ended = cluster("up")
    assert ended.returncode == 1, ended.stderr
    own = f"{project}/my_job.py:1: ValueError: 4711, in `raise ValueError(open('data.csv').read())`"
    assert ended.stderr.splitlines()[-1] == f"no task was started, because h1 cannot build the job's graph: {own}"
    assert not list(cluster.folder.rglob("pulse.json")) and not list(cluster.folder.rglob("graph.0"))
    eventually("nothing of the start is left", lambda: cluster.left() == [])


def test_a_chiefs_process_that_fails_before_its_turn_but_by_no_mistake_is_replaced(cluster: Cluster) -> None:
    cluster.write(STAY)
    cluster.train(FAILS_ONCE, "h1")
    ended = cluster("up")
    assert ended.returncode == 0, ended.stderr
    status = cluster.status()
    assert (
        status["global_step"] == 1 and not status["incidents"] and not any(each["restarts"] for each in status["tasks"])
    )
    assert cluster.left() == []
