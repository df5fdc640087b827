"""The launcher over SSH, on hosts that share nothing: real sshd, real kills, and real TensorFlow where it trains."""

import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, Callable, Iterator, List

import pytest
from ClusterShell.NodeSet import NodeSet

from tests.support.hosts import FakeHosts, Host
from tests.support.hosts.fixture import hosts_here
from tests.support.launch.over_ssh import HostsFile
from tests.support.nightly import few
from tests.support.waiting import PATIENCE_S, eventually

# A task that holds its port, as a server of TensorFlow does, until it is ended.
LISTENS = """
import socket, sys, time
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("", int(sys.argv[1])))
listener.listen(5)
print("listens", flush=True)
time.sleep(1e6)
"""


class Cluster(HostsFile):
    """Three fake hosts and a hosts file for them: the ps on h1, the workers on h2 and h3."""

    def __init__(self, hosts: FakeHosts, folder: Path):
        super().__init__(hosts, folder, "three")
        self.write()

    def write(self, **keys: Any) -> None:
        """The file, with these keys more, or instead."""
        train = {"steps": 40, "batch_size": 16, "towers": 2}
        cluster = {"ps": ["h1"], "worker": ["h[2-3]"]}
        values = {"job": "digits", "cluster": cluster, "train": train, **keys}
        self.put(**{key: value for key, value in values.items() if value is not None})

    def write_endless(self) -> None:
        """A file whose tasks listen until they are ended."""
        (self.folder / "listens.py").write_text(LISTENS)
        self.write(job=None, train=None, command=["{python}", "listens.py", "{port}"])

    def write_program(self) -> None:
        """A file whose tasks only wait, for runs that do not begin."""
        self.write(job=None, train=None, command=["sleep", "1000"])

    def left(self) -> List[str]:
        """What of a run is on the hosts: processes, ports, locks, sockets; not what ends with a connection to it."""
        eventually("the end of closed connections", lambda: not any(map(connected, self.hosts)))
        found = []
        for host in self.hosts:
            found += [f"{host.name}: {process.argv}" for process in host.processes()]
            found += [f"{host.name}: port {port}" for port in host.listening_ports()]
            files = host.run(["find", "/root/.launch", "-name", "*.lock", "-o", "-name", "*.sock"]).stdout.split()
            found += [f"{host.name}: {path}" for path in files if "No such" not in path]
        return found


def connected(host: Host) -> List[str]:
    """What a launcher runs on a host through its connection."""
    return [str(process.argv) for process in host.processes() if "io.FileIO" in str(process.argv)]


@pytest.fixture
def fresh(fake_hosts: Callable[[int], FakeHosts], tmp_path: Path) -> Cluster:
    """A cluster of hosts on which nothing ever ran, for tests that look at their disks or change their keys."""
    return Cluster(fake_hosts(3), tmp_path)


@pytest.fixture(scope="module")
def hosts() -> Iterator[FakeHosts]:
    with hosts_here(3) as three:
        yield three


@pytest.fixture
def cluster(hosts: FakeHosts, tmp_path: Path) -> Cluster:
    """A cluster of the hosts of all tests, where nothing runs."""
    return Cluster(hosts, tmp_path)


def wait_until(event: Callable[[], bool], what: str, process: "subprocess.Popen[str]") -> None:
    """Wait for an event, as long as ``process`` lives."""

    def seen() -> bool:
        assert process.poll() is None or event(), f"never saw {what}: {process.communicate()[0]}"
        return event()

    eventually(what, seen)


def all_listen(cluster: Cluster) -> bool:
    """Whether every task is up."""
    return all(2222 in host.listening_ports() for host in cluster.hosts)


def test_three_hosts_that_share_nothing_train_digits_to_the_end(fresh: Cluster) -> None:
    cluster = fresh
    fails_with_the_chief = "echo $LAUNCH_RUN > /root/after; test ! -e /root/.launch/runs/$LAUNCH_RUN/worker.0"
    ran = cluster.launch("up", "--set", f'after=["{fails_with_the_chief}"]')
    assert ran.returncode == 0, ran.stdout
    assert f"\nh2: failed commands of the key after: `{fails_with_the_chief}`: exit code 1\n" in ran.stdout
    run = cluster.status()["run"]
    assert [host.run(["cat", "/root/after"]).stdout for host in cluster.hosts] == [f"{run}\n"] * 3
    assert "succeeded: step 40" in ran.stdout
    assert "held-out data: loss" in ran.stdout and "accuracy" in ran.stdout.splitlines()[-1]
    h1, h2, h3 = cluster.hosts
    assert "model-40.index" in h2.run(["sh", "-c", "ls /root/.launch/runs/*/checkpoint"]).stdout
    for other in (h1, h3):
        assert other.run(["sh", "-c", "ls /root/.launch/runs/*/checkpoint"]).returncode != 0
    assert cluster.left() == []

    # What is there is not sent again; a resumed run goes on where the first one ended.
    before = h3.run(["sh", "-c", "stat -c '%n %i' /root/.launch/code/*"]).stdout
    again = cluster.launch("up", "--resume", "--set", "train.steps=60")
    assert again.returncode == 0, again.stdout
    assert h3.run(["sh", "-c", "stat -c '%n %i' /root/.launch/code/*"]).stdout == before
    assert cluster.status()["global_step"] == 60
    assert "worker:0@h2 joined at step 40" in cluster.launch("logs", "worker:0").stdout


def test_a_detached_run_is_watched_and_ended_from_another_shell(cluster: Cluster) -> None:
    cluster.write_endless()
    up = cluster.launch("up", "-d")
    assert up.returncode == 0, up.stdout
    status = cluster.status()
    assert status["state"] == "running"
    assert [(task["role"], task["host"], task["state"]) for task in status["tasks"]] == [
        ("ps", "h1", "running"),
        ("worker", "h2", "running"),
        ("worker", "h3", "running"),
    ]
    eventually("every task", lambda: all_listen(cluster))
    assert cluster.launch("logs", "worker:1").stdout == "worker:1@h3 listens\n"
    assert cluster.launch("up").returncode == 3  # one run of a name at a time
    down = cluster.launch("down")
    assert down.returncode == 0, down.stdout
    # An agent, its keeper and a task on each. Hosts number their pids alike, so that two may share a line.
    ended = rf"(\S+): {status['run']}: ended 3 processes in 2 groups \(pids [\d, ]+\), (port \d+, )+2 locks; no .* left"
    folded = [re.fullmatch(ended, line) for line in down.stdout.splitlines()]
    assert folded and all(folded), down.stdout
    assert sorted(host for line in folded if line for host in NodeSet(line.group(1))) == ["h1", "h2", "h3"]
    assert cluster.left() == []
    assert cluster.status()["state"] == "stopped"


def test_ctrl_c_stops_the_run_in_order_and_leaves_nothing(cluster: Cluster) -> None:
    cluster.write_endless()
    up = cluster.start("up")
    wait_until(lambda: all_listen(cluster), "every task", up)
    up.send_signal(signal.SIGINT)
    output, _ = up.communicate(timeout=PATIENCE_S)
    assert up.returncode == 128 + signal.SIGINT, output
    assert "SIGINT: stopping the workers, then the ps" in output
    assert cluster.left() == []


def test_a_job_that_raises_ends_the_run_with_host_task_cause_and_log(cluster: Cluster) -> None:
    (cluster.folder / "broken.py").write_text(
        textwrap.dedent(
            """
            import tensorflow.compat.v1 as tf
            def inputs(task, args):
                if task.index:  # the chief's graph can be built, so the run begins
                    raise ValueError("no such file")
                return tf.data.Dataset.from_tensors({"x": [1.0], "y": [2.0]}).repeat().batch(task.batch_size)
            def model(x, y):
                return tf.square(x - tf.get_variable("w", [1]))[:, 0]
            def optimizer(args):
                return tf.train.AdamOptimizer()
            """
        )
    )
    cluster.write(job="broken.py")
    ran = cluster.launch("up")
    assert ran.returncode == 1, ran.stdout
    last = ran.stdout.splitlines()[-1]
    assert "failed: worker:1" in last and "@h" in last and "broken.py:5" in last and "no such file" in last
    assert "attempt_0.log" in ran.stdout
    assert cluster.left() == []


def test_every_host_that_cannot_start_is_named_with_its_reason_and_nothing_is_left(fresh: Cluster) -> None:
    cluster = fresh
    _, h2, h3 = cluster.hosts
    cluster.hosts.change_host_key(0)
    h3.power_cut()
    ran = cluster.launch("up")
    assert ran.returncode == 3
    assert "h1: its host key differs from the one in" in ran.stdout and "ssh-keygen -R" in ran.stdout
    assert "h3: no " in ran.stdout
    assert "h2:" not in ran.stdout
    eventually("the end of closed connections", lambda: not connected(h2))
    assert h2.processes() == []


def test_an_unknown_host_key_is_refused_with_the_command_that_shows_and_accepts_it(cluster: Cluster) -> None:
    known = cluster.hosts.known_hosts
    keys = known.read_text()
    known.write_text("")
    ran = cluster.launch("up")
    known.write_text(keys)
    assert ran.returncode == 3
    assert f"h1: its host key is not in {known}" in ran.stdout
    assert "verify the key, then accept it with `ssh -o StrictHostKeyChecking=ask " in ran.stdout
    assert f"-o UserKnownHostsFile={known} " in ran.stdout


def test_a_taken_port_or_a_missing_python_on_one_host_takes_the_whole_start_back(cluster: Cluster) -> None:
    h3 = cluster.hosts[2]
    cluster.write_program()
    listen = "import socket,time;s=socket.socket();s.bind(('',2222));s.listen(1);print('up',flush=True);time.sleep(600)"
    taker = h3.popen([sys.executable, "-c", listen], stdout=subprocess.PIPE)
    try:
        assert taker.stdout is not None and taker.stdout.readline()
        ran = cluster.launch("up")
        assert ran.returncode == 3
        assert "h3: port 2222 of worker:1 is taken by pid" in ran.stdout
        assert [line for line in cluster.left() if not line.startswith("h3")] == []
    finally:
        taker.kill()
        taker.communicate()
    cluster.write(name="other", python="python9.9")
    ran = cluster.launch("up")
    assert ran.returncode == 3
    assert "h1: no python9.9 there" in ran.stdout and "name another with the key python" in ran.stdout


@pytest.mark.parametrize("victim", few([1, 2], [2]))
def test_a_host_that_loses_power_is_named_and_the_others_are_left_clean(cluster: Cluster, victim: int) -> None:
    """h2 holds the chief and the lead, h3 the other worker."""
    cluster.write_endless()
    up = cluster.start("up")
    wait_until(lambda: all_listen(cluster), "every task", up)
    lost = cluster.hosts[victim]
    lost.power_cut()
    output, _ = up.communicate(timeout=PATIENCE_S)
    assert up.returncode == 1, output
    assert f"failed: {lost.name}: " in output.splitlines()[-1]
    lost.power_on()
    assert cluster.left() == [line for line in cluster.left() if line.startswith(f"{lost.name}: /root")]
    assert cluster.launch("down").returncode == 0
    assert cluster.left() == []


def test_a_firewall_between_the_agents_is_named_with_the_port_to_open(cluster: Cluster) -> None:
    """h2 has the lead, which listens on the port after its task's: 2223."""
    rules = "table inet wall {\n chain incoming {\n type filter hook input priority 0\n tcp dport 2223 drop\n }\n}\n"
    assert cluster.hosts[1].run(["nft", "-f", "-"], stdin=rules).returncode == 0
    cluster.write_program()
    ran = cluster.launch("up")
    assert cluster.hosts[1].run(["nft", "delete", "table", "inet", "wall"]).returncode == 0
    assert ran.returncode == 3, ran.stdout
    assert "its agent has not reached the lead agent at h2:2223" in ran.stdout
    assert cluster.left() == []
