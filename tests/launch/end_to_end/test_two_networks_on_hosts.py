"""Hosts with two networks: SSH goes by ``host``, tasks and agents by ``address``."""

import json
from pathlib import Path
from typing import Any, Dict, Iterator

import pytest

from launch.agent.wire.run_request import LOST_S
from tests.support.hosts import FakeHosts
from tests.support.hosts.fixture import hosts_here
from tests.support.launch.over_ssh import HostsFile
from tests.support.waiting import eventually, let_pass

OTHER = "10.99.0.{}"
CUT = "add table inet wall; add chain inet wall {0} {{ type filter hook {0} priority 0; }}; add rule inet wall {0} {1}"


@pytest.fixture(scope="module")
def hosts() -> Iterator[FakeHosts]:
    """Three hosts with an address in a second network."""
    with hosts_here(3) as three:
        for number, host in enumerate(three, 1):
            rows = host.run(["ip", "-o", "-4", "address"]).stdout.splitlines()
            card = next(row.split()[1] for row in rows if f" {host.address}/" in row)
            added = host.run(["ip", "address", "add", f"{OTHER.format(number)}/24", "dev", card])
            assert added.returncode == 0, added.stderr
        yield three


def cut(hosts: FakeHosts, network: str) -> None:
    for host in hosts:
        for hook, rule in (("input", f"ip saddr {network} drop"), ("output", f"ip daddr {network} drop")):
            done = host.run(["nft", CUT.format(hook, rule)])
            assert done.returncode == 0, done.stderr


def mend(hosts: FakeHosts) -> None:
    for host in hosts:
        host.run(["nft", "delete table inet wall"])


def test_a_detached_run_goes_on_without_the_network_of_ssh(hosts: FakeHosts, tmp_path: Path) -> None:
    file = HostsFile(hosts, tmp_path, "two")
    workers = [{"host": host.name, "address": OTHER.format(number)} for number, host in enumerate(hosts, 1)]
    file.put(command=["sleep", "1000"], cluster={"worker": workers})
    started = file.launch("up", "-d")
    assert started.returncode == 0, started.stdout

    def told() -> Dict[str, Any]:
        status: Dict[str, Any] = file.told()  # through the console, not by SSH
        return status

    before = [task["pid"] for task in told()["tasks"]]
    try:
        cut(hosts, "10.77.0.0/16")
        let_pass(2 * LOST_S)  # a host is lost after 13 s
        during = told()
        assert (during["state"], during["incidents"]) == ("running", [])
        assert [task["pid"] for task in during["tasks"]] == before and None not in before
    finally:
        mend(hosts)
    try:
        cut(hosts, "10.99.0.0/16")
        eventually("lost hosts", lambda: told()["state"] == "failed")
        assert "no message for" in json.dumps(told()["cause"])
    finally:
        mend(hosts)
        file.launch("down")


def test_up_names_the_hosts_that_have_no_address_for_a_task_that_they_dial(hosts: FakeHosts, tmp_path: Path) -> None:
    known = hosts[0].read("/etc/hosts")
    hosts[0].write("/etc/hosts", f"{known}\n{OTHER.format(1)} known-here-only\n")
    file = HostsFile(hosts, tmp_path, "names")
    chief = {"host": hosts[0].name, "address": "known-here-only"}
    file.put(command=["sleep", "1000"], cluster={"worker": [chief, "h2", "h3"]})
    try:
        ended = file.launch("up", "-d")
    finally:
        hosts[0].write("/etc/hosts", known)
    lines = [line for line in ended.stdout.splitlines() if "known-here-only" in line]
    assert ended.returncode == 3, ended.stdout
    assert [line.split(":")[0] for line in lines] == ["h2", "h3"]
    assert all("has no address on this host" in line and "the key address" in line for line in lines)
