"""Hosts that accept a connection and say nothing, or never answer: each verb ends soon, and names what is wrong.

Of five hosts with a detached run three are mute: the lead's sshd is stopped, the second host drops every packet to its
sshd, and the third one every long packet, as a link does whose MTU is too small.
"""

import json
import subprocess
import time
from typing import Iterator, List, Tuple

import pytest

from tests.support import ROOT
from tests.support.hosts import FakeHosts
from tests.support.hosts.fixture import hosts_here
from tests.support.hosts.host import Host
from tests.support.launch.launcher import LAUNCH
from tests.support.launch.over_ssh import HostsFile
from tests.support.waiting import PATIENCE_S

CONNECT_S = 4.0
WALL = "add table inet wall; add chain inet wall in {{ type filter hook input priority 0; }}; add rule inet wall in {}"
STOPPED = "h1 port 22 accepts the connection, and sends nothing within 4 s; its sshd hangs"
MUTE = "no answer from {} port 22 within 4 s"
LONG = "begins SSH, and the key exchange does not end within 4 s; long packets are lost on the way (MTU)"


@pytest.fixture(scope="module")
def hosts() -> Iterator[FakeHosts]:
    with hosts_here(5) as five:
        yield five


@pytest.fixture(scope="module")
def run(hosts: FakeHosts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostsFile]:
    """A detached run on all hosts, of which three have become mute since. The last test ends it."""
    file = HostsFile(hosts, tmp_path_factory.mktemp("mute"), "mute")
    connection = {
        "config": str(hosts.ssh_config),
        "known_hosts": str(hosts.known_hosts),
        "connect_timeout_s": CONNECT_S,
    }
    file.put(command=["sleep", "1000"], cluster={"worker": ["h[1-5]"]}, ssh=connection)
    started = file.launch("up", "-d")
    assert started.returncode == 0, started.stdout
    signal_sshd(hosts[0], "STOP")
    hosts[1].run(["nft", WALL.format("tcp dport 22 drop")])
    hosts[2].run(["nft", WALL.format("meta length > 600 tcp dport 22 drop")])
    try:
        yield file
    finally:
        signal_sshd(hosts[0], "CONT")
        for host in hosts:
            host.run(["nft", "delete table inet wall"])
        file.launch("down")


def signal_sshd(host: Host, name: str) -> None:
    """Stops or continues the process that accepts connections."""
    assert host.run(["sh", "-c", f"kill -{name} $(cat /run/sshd.pid)"]).returncode == 0


def timed(file: HostsFile, verb: str, *words: str) -> Tuple[float, "subprocess.CompletedProcess[str]"]:
    """How long a verb takes in a process of its own, whose threads must end, too."""
    began = time.monotonic()
    command = [*LAUNCH, verb, str(file.file), *words]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=str(ROOT), timeout=PATIENCE_S, check=False)
    return time.monotonic() - began, ended


def test_each_verb_that_asks_every_host_ends_as_soon(hosts: FakeHosts, run: HostsFile) -> None:
    for verb in ("runs", "sweep", "prune"):
        took_s, ended = timed(run, verb, "--json")
        unasked: List[str] = [each["host"] for each in json.loads(ended.stdout)["hosts"] if each["error"] is not None]
        assert unasked == ["h1", "h2", "h3"] and took_s < CONNECT_S + 20 and "MaxStartups" not in ended.stdout


def test_status_and_down_end_within_some_connections_and_name_each_cause(hosts: FakeHosts, run: HostsFile) -> None:
    took_s, status = timed(run, "status")
    assert status.returncode == 3 and STOPPED.replace("h1", hosts[0].address) in status.stderr
    assert took_s < 2 * CONNECT_S + 15

    took_s, down = timed(run, "down", "--json")
    told = {each["host"]: each["error"] for each in json.loads(down.stdout)["hosts"]}
    assert down.returncode == 4 and took_s < CONNECT_S + 30
    assert STOPPED.replace("h1", hosts[0].address) in told["h1"]
    assert MUTE.format(hosts[1].address) in told["h2"] and LONG in told["h3"]
    assert told["h4"] is told["h5"] is None
