"""``launch diagnose`` of hosts in trouble: what is wrong with each is said, and one that is off holds up no other."""

import json
import signal
import tarfile
from pathlib import Path
from typing import Iterator, List

import pytest

from tests.support.hosts import FakeHosts
from tests.support.hosts.fixture import hosts_here
from tests.support.hosts.host import Host
from tests.support.launch.over_ssh import HostsFile
from tests.support.waiting import eventually

AGENT = "launch agent of ill-"
TASK = ["sh", "-c", "echo up; exec sleep 100000"]


@pytest.fixture(scope="module")
def hosts() -> Iterator[FakeHosts]:
    with hosts_here(3) as hosts:
        yield hosts


def pids_of(host: Host, words: str) -> List[int]:
    """The processes of a host that ``ps`` shows so."""
    return [each.pid for each in host.processes() if " ".join(each.argv).startswith(words)]


def test_a_dead_agent_and_a_host_without_power_are_named_and_the_rest_is_told(hosts: FakeHosts, tmp_path: Path) -> None:
    run = HostsFile(hosts, tmp_path, "ill")
    run.put(command=TASK, cluster={"worker": ["h[1-3]:2300"]}, restart={"max": 0}, name="ill")
    assert run.launch("up", "-d").returncode == 0
    _, second, third = hosts
    eventually("the tasks", lambda: all(pids_of(host, "sleep 100000") for host in hosts))
    (agent,) = pids_of(second, AGENT)
    second.run(["kill", f"-{signal.SIGKILL.value}", str(agent)])
    third.power_cut()
    path = tmp_path / "x.tar.gz"
    told = json.loads(run.launch("diagnose", "--json", "-o", str(path)).stdout)
    by = {host["host"]: host for host in told["hosts"]}
    assert by["h1"]["error"] is None and {"status.json", "plan.json", "agent.log"} <= set(by["h1"]["files"])
    assert by["h2"]["error"] is None and "tasks/worker.1/attempt_0.log" in by["h2"]["files"]
    assert by["h3"]["error"] and by["h3"]["files"] == []
    assert by["h3"]["looks_wrong"] == [f"incomplete answer: {by['h3']['error']}"]
    with tarfile.open(str(path)) as archive:
        file = archive.extractfile("x/summary.txt")
        assert file is not None and "h3: no answer: " in file.read().decode()
    run.launch("down")
