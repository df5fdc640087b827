"""An attached run whose launcher is cut off from the hosts: followed on within the lease, ended and gone after it."""

import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, List

import pytest

from tests.support.hosts import FakeHosts
from tests.support.hosts.fixture import hosts_here
from tests.support.launch.launcher import LAUNCH
from tests.support.launch.over_ssh import HostsFile
from tests.support.waiting import PATIENCE_S, eventually

# Each task says that it runs, and ends well when it is let.
TASK = "echo up; while [ ! -e /root/enough ]; do sleep 0.1; done"
CUT = """
table inet cut {{
    chain in {{ type filter hook input priority 0; ip saddr {launcher} drop; }}
    chain out {{ type filter hook output priority 0; ip daddr {launcher} drop; }}
}}
"""


@pytest.fixture(scope="module")
def hosts() -> Iterator[FakeHosts]:
    """Two hosts, h1 with the chief and the lead."""
    with hosts_here(2) as two:
        yield two


class Attached(HostsFile):
    """An attached ``launch up`` whose tasks run, and what it has printed."""

    def __init__(self, hosts: FakeHosts, folder: Path):
        super().__init__(hosts, folder, "two")
        self.printed = folder / "printed"
        self.put(name=folder.name, command=["sh", "-c", TASK], cluster={"worker": ["h1", "h2"]})
        self.process = self._begin()

    def _begin(self) -> "subprocess.Popen[bytes]":
        with self.printed.open("wb") as printed:
            argv = [*LAUNCH, "up", str(self.file)]
            return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT)

    def says(self, text: str) -> bool:
        return text in self.printed.read_text()

    def cut_off(self) -> None:
        """No packet passes between the launcher's machine and the hosts; the hosts hear each other."""
        for host in self.hosts:
            rules = CUT.format(launcher=self.hosts.launcher_address)
            assert host.run(["nft", "-f", "-"], stdin=rules).returncode == 0

    def heal(self) -> None:
        for host in self.hosts:
            host.run(["nft", "delete", "table", "inet", "cut"])

    def left(self) -> List[str]:
        """Processes and locks on the hosts."""
        found = [f"{host.name}: {process.argv}" for host in self.hosts for process in host.processes()]
        for host in self.hosts:
            found += host.run(["find", "/root/.launch/locks", "-type", "f"]).stdout.split()
        return found


@pytest.fixture
def attached(hosts: FakeHosts, tmp_path: Path) -> Iterator[Attached]:
    with running(Attached(hosts, tmp_path)) as run:
        yield run


@contextmanager
def running(run: Attached) -> Iterator[Attached]:
    try:
        eventually("tasks that run", lambda: run.says("running: 2 running"))
        yield run
    finally:
        run.heal()
        run.process.kill()
        run.process.wait(PATIENCE_S)


def test_a_launcher_that_is_back_within_the_lease_follows_the_run_to_its_end(attached: Attached) -> None:
    attached.cut_off()
    eventually("that the connection was lost", lambda: attached.says("lost the connection to h1; retrying"))
    attached.heal()
    for host in attached.hosts:
        host.write("/root/enough", "")
    assert attached.process.wait(PATIENCE_S) == 0, attached.printed.read_text()
    assert attached.says("succeeded") and attached.left() == []
    for host in attached.hosts:
        host.run(["rm", "/root/enough"])


def test_after_the_lease_the_hosts_are_clean_and_the_launcher_says_why_it_failed(attached: Attached) -> None:
    attached.cut_off()
    eventually("hosts that are clean by themselves", lambda: attached.left() == [])
    assert attached.process.wait(PATIENCE_S) == 1, attached.printed.read_text()
    assert attached.says("(the chief's host was lost)")
    attached.heal()
    status = attached.status()
    assert (status["state"], "its lease on the run ended" in status["cause"]) == ("stopped", True)
