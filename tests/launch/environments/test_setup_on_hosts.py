"""``launch setup`` over SSH: real environments on hosts that share nothing and reach no internet."""

import json
import signal
import socket
from pathlib import Path
from typing import Iterator, List

import pytest

from tests.support.hosts import FakeHosts
from tests.support.hosts.fixture import hosts_here
from tests.support.launch.over_ssh import HostsFile
from tests.support.launch.tiny_wheels import tiny_wheel
from tests.support.nightly import few
from tests.support.waiting import PATIENCE_S, eventually

BUILT = "find /root/.launch/envs -mindepth 1 -maxdepth 1 -type d"


@pytest.fixture(scope="module")
def hosts() -> Iterator[FakeHosts]:
    with hosts_here(2) as hosts:
        yield hosts


class Project(HostsFile):
    """A hosts file with a lock of one tiny package, and a folder with its wheel."""

    def __init__(self, hosts: FakeHosts, folder: Path):
        super().__init__(hosts, folder, "hosts")
        self.lock()
        self.write()

    def lock(self, version: str = "1.0") -> None:
        (self.folder / "my.lock").write_text(tiny_wheel(self.folder / "wheels", "tiny", version))

    def write(self, **setup: str) -> None:
        script = "import sys, tiny; print(tiny.VERSION, 'in', sys.prefix)"
        setup = {"lock": "my.lock", **(setup or {"wheels": "wheels"})}
        self.put(name="r", command=["{python}", "-c", script], cluster={"worker": ["h[1-2]"]}, setup=setup)

    def running(self) -> List[str]:
        """What runs on the hosts."""
        return [str(process.argv) for host in self.hosts for process in host.processes()]

    def environments(self) -> List[List[str]]:
        """Of each host, the environments that are there."""
        return [host.run(["sh", "-c", BUILT]).stdout.split() for host in self.hosts]


@pytest.fixture
def project(hosts: FakeHosts, tmp_path: Path) -> Project:
    return Project(hosts, tmp_path)


def test_an_environment_is_built_once_on_each_host_and_one_that_is_cut_off_holds_up_no_other(project: Project) -> None:
    before = project.launch("up")
    assert before.returncode == 3
    for host in ("h1", "h2"):
        hint = f"build it with `launch setup {project.file}`"
        assert f"{host}: its Python environment is not built; {hint}" in before.stdout

    project.hosts[1].unplug()
    partly = project.launch("setup", "--json")
    project.hosts[1].plug()
    assert partly.returncode == 3
    told = json.loads(partly.stdout.splitlines()[-2])
    assert [(host["host"], host["state"]) for host in told["hosts"]] == [("h1", "built"), ("h2", "failed")]
    assert partly.stdout.splitlines()[-1].startswith("h2: no answer from ")
    assert [len(there) for there in project.environments()] == [1, 0]
    assert project.launch("setup").stdout.splitlines()[-2:] == ["h2: built", "h1: up to date"]
    again = project.launch("setup")
    assert (again.returncode, again.stdout.splitlines()[-1]) == (0, "h[1-2]: up to date")

    up = project.launch("up")
    assert up.returncode == 0, up.stdout
    (environment,) = project.environments()[1]
    assert f"worker:1@h2 1.0 in {environment}\n" in project.launch("logs", "worker:1").stdout
    project.lock("2.0")
    assert project.launch("up").returncode == 3


@pytest.mark.parametrize("number", few([signal.SIGINT, signal.SIGKILL], [signal.SIGKILL]))
def test_builds_end_with_their_launcher(number: signal.Signals, project: Project) -> None:
    project.lock("3.0")
    before = project.environments()
    with socket.socket() as index:  # accepts every connection, and never answers: pip waits
        index.bind((project.hosts.launcher_address, 0))
        index.listen(10)
        index.settimeout(PATIENCE_S)
        project.write(index_url="http://{}:{}/simple".format(*index.getsockname()))
        setup = project.start("setup")
        asking = [index.accept()[0] for _ in project.hosts]
        setup.send_signal(number)
        output, _ = setup.communicate(timeout=PATIENCE_S)
        if number == signal.SIGINT:  # it has waited for their end
            assert setup.returncode == 128 + signal.SIGINT, output
            assert project.running() == []
        eventually("the end of the builds", lambda: not project.running())
        assert project.environments() == before
        for connection in asking:
            connection.close()


def test_a_host_that_reaches_no_index_or_has_no_space_is_told_what_to_do(project: Project) -> None:
    project.lock("4.0")
    address = f"{project.hosts.launcher_address}:9"
    project.write(index_url=f"http://{address}/simple")
    failed = project.launch("setup", "--include", "h1")
    assert failed.returncode == 3
    assert f"h1: the package index {address} cannot be reached from that host; name another" in failed.stdout
    assert "h2" not in failed.stdout

    # The wheels are sent, then; the disk fills up.
    small = "mount -t tmpfs -o size=8m,mode=700 small /root/.launch/envs"
    assert project.hosts[1].run(["sh", "-c", f"mkdir -p /root/.launch/envs && {small}"]).returncode == 0
    partly = project.launch("setup", "--include", "h2", "--wheels", str(project.folder / "wheels"))
    assert project.hosts[1].run(["umount", "/root/.launch/envs"]).returncode == 0
    assert partly.returncode == 3
    assert "h2: the disk is full (" in partly.stdout.splitlines()[-1]
