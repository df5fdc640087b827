"""What is left of a run on real hosts however it ends, and that nobody else is ever signalled.

On every host sleeps a bystander with the command line of the runs' own processes.
"""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

from tests.support.hosts import FakeHosts
from tests.support.hosts.fixture import hosts_here
from tests.support.hosts.host import Host
from tests.support.launch.over_ssh import HostsFile
from tests.support.waiting import PATIENCE_S, eventually

SLEEP = ["sleep", "100000"]
# A task with a child in its session and one that has left it; all of them look like the bystander.
TASK = f"setsid {' '.join(SLEEP)} & {' '.join(SLEEP)} & exec {' '.join(SLEEP)}"
MORE = [("killed", 2700), ("cut", 2800), ("maimed", 2900)]
NO_LAUNCHER = "table inet wall {\n chain incoming {\n type filter hook input priority 0\n tcp dport 22 drop\n }\n}\n"


@pytest.fixture(scope="module")
def hosts() -> Iterator[FakeHosts]:
    with hosts_here(2) as hosts:
        yield hosts


@pytest.fixture
def bystanders(hosts: FakeHosts) -> Iterator[List["subprocess.Popen[Any]"]]:
    """One on every host; a test during which one of them was signalled has failed."""
    standing = [host.popen(SLEEP) for host in hosts]
    eventually("the bystanders", lambda: [sleepers(host) for host in hosts] == [1, 1])
    yield standing
    assert [process.poll() for process in standing] == [None, None]
    for process in standing:
        process.kill()
        process.wait()


def sleepers(host: Host) -> int:
    """How many processes have the bystander's command line."""
    return sum(list(process.argv) == SLEEP for process in host.processes())


class Run(HostsFile):
    """A run of two tasks, the lead's on h1, with a name and ports of its own."""

    def __init__(self, hosts: FakeHosts, folder: Path, name: str, port: int):
        super().__init__(hosts, folder, name)
        self.name = name
        self.put(command=["sh", "-c", TASK], cluster={"worker": [f"h[1-2]:{port}"]}, restart={"max": 0})

    def attached(self) -> "subprocess.Popen[str]":
        """``launch up``, once its tasks run."""
        up = self.start("up")
        eventually("tasks", lambda: all(len(self.pids(host)) == 3 for host in self.hosts))
        return up

    def pids(self, host: Host) -> List[int]:
        """The processes of the run's tasks on a host, which know its name by their environment."""
        script = f'grep -lz "^LAUNCH_RUN={self.name}-" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3'
        found = map(int, host.run(["sh", "-c", script]).stdout.split())
        return [pid for pid in found if host.exists(f"/proc/{pid}/environ")]

    def left(self) -> List[str]:
        """What of the run is on the hosts: processes, locks, sockets."""
        found = [f"{host.name}: {pid}" for host in self.hosts for pid in self.pids(host)]
        for host in self.hosts:
            found += [f"{host.name}: {p.argv}" for p in host.processes() if f" of {self.name}-" in " ".join(p.argv)]
            script = f"ls -d /root/.launch/locks/{self.name}@* /root/.launch/runs/{self.name}-*/hosts/*/agent.sock"
            found += host.run(["sh", "-c", f"{script} 2>/dev/null"]).stdout.split()
        return found

    def kill_agent(self, host: Host, keeper: bool = False) -> None:
        """Kills the agent on a host, as the kernel does; with its keeper, nobody cleans up."""
        record = self.record(host, "agent.json")
        doomed = [record["keeper"], record["agent"]] if keeper else [record["agent"]]
        assert host.run(["kill", "-KILL", *(str(process["pid"]) for process in doomed)]).returncode == 0

    def record(self, host: Host, name: str) -> Dict[str, Any]:
        """A file of the agent's on a host."""
        script = f"cat /root/.launch/runs/{self.name}-*/hosts/{host.name}/{name}"
        values: Dict[str, Any] = json.loads(host.run(["sh", "-c", script]).stdout)
        return values

    def sweep(self, *arguments: str) -> Dict[str, Any]:
        """``launch sweep --json``, with its exit code."""
        ran = self.launch("sweep", "--json", *arguments)
        return {"code": ran.returncode, **json.loads(ran.stdout)}


def test_sweep_ends_what_a_killed_run_left_and_no_bystander_nor_any_run_that_lives(
    hosts: FakeHosts, tmp_path: Path, bystanders: List[Any]
) -> None:
    dead, alive = Run(hosts, tmp_path, "dead", 2300), Run(hosts, tmp_path, "alive", 2400)
    assert dead.sweep()["code"] == 0
    for run in (dead, alive):
        assert run.launch("up", "-d").returncode == 0
    # The child that left its task's session is known by the agent's notes only.
    eventually("notes", lambda: all(others(dead, host) == 2 for host in hosts))
    for host in hosts:
        dead.kill_agent(host, keeper=True)
    eventually("the end of the tasks", lambda: all(len(dead.pids(host)) == 2 for host in hosts))

    found = dead.sweep()
    assert (found["code"], found["clean"]) == (4, False)
    for told in found["hosts"]:
        assert [run["run"].rsplit("-", 2)[0] for run in told["running"]] == ["alive"]
        (entry,) = told["left"]
        assert entry["run"].startswith("dead-") and entry["processes"] and len(entry["locks"]) == 2
        assert all(process["argv"] == " ".join(SLEEP) for process in entry["processes"])
    lines = dead.launch("sweep").stdout
    assert "h1: dead-" in lines and "LEFT: process" in lines and "--kill`" in lines
    assert all(len(dead.pids(host)) == 2 for host in hosts)  # looking ends nothing

    # From the file of another run, since a name is no bound.
    swept = alive.sweep("--kill")
    assert (swept["code"], swept["clean"]) == (0, True)
    assert [len(told["ended"][0]["processes"]) for told in swept["hosts"]] == [2, 2]
    assert dead.left() == []
    assert all(len(alive.pids(host)) == 3 for host in hosts)
    assert [sleepers(host) for host in hosts] == [4, 4]  # the living run's three, and the bystander

    down = alive.launch("down")
    assert down.returncode == 0, down.stdout
    assert alive.left() == [] and [sleepers(host) for host in hosts] == [1, 1]


def others(run: Run, host: Host) -> int:
    """How many descendants of its tasks an agent has noted."""
    return len(run.record(host, "processes.json")["others"])


def test_runs_that_lose_their_launcher_leave_nothing_and_detached_ones_go_on_also_without_an_agent(
    hosts: FakeHosts, tmp_path: Path, bystanders: List[Any]
) -> None:
    detached = Run(hosts, tmp_path, "detached", 2500)
    assert detached.launch("up", "-d").returncode == 0
    before = [sorted(detached.pids(host)) for host in hosts]
    assert [len(pids) for pids in before] == [3, 3]

    interrupted = Run(hosts, tmp_path, "interrupted", 2600)
    up = interrupted.attached()
    up.send_signal(signal.SIGINT)
    output, _ = up.communicate(timeout=PATIENCE_S)
    assert up.returncode == 128 + signal.SIGINT, output
    assert interrupted.left() == []

    killed, cut, maimed = (Run(hosts, tmp_path, name, port) for name, port in MORE)
    assert maimed.launch("up", "-d").returncode == 0
    eventually("notes", lambda: all(others(maimed, host) == 2 for host in hosts))
    launchers = [killed.attached(), cut.attached()]
    launchers[0].kill()
    doomed = maimed.pids(hosts[1])
    maimed.kill_agent(hosts[1])
    for host in hosts:  # the hosts still reach each other, but no launcher reaches them
        assert host.run(["nft", "-f", "-"], stdin=NO_LAUNCHER).returncode == 0
    eventually("the end of all", lambda: not (killed.left() or cut.left()))
    eventually(
        "the tasks of the next agent",
        lambda: len(maimed.pids(hosts[1])) == 3 and not set(doomed) & set(maimed.pids(hosts[1])),
    )
    for host in hosts:
        assert host.run(["nft", "delete", "table", "inet", "wall"]).returncode == 0
    output, _ = launchers[1].communicate(timeout=PATIENCE_S)
    assert launchers[1].returncode == 1, output
    launchers[0].communicate(timeout=PATIENCE_S)
    for run in (killed, cut):
        status = json.loads(run.launch("status", "--json").stdout)
        assert (status["state"], status["cause"].rsplit(", ")[-1]) == ("stopped", "so its lease on the run ended")

    assert [sorted(detached.pids(host)) for host in hosts] == before
    for run in (detached, maimed):
        assert run.launch("down").returncode == 0
        assert run.left() == []
    assert [sleepers(host) for host in hosts] == [1, 1]
