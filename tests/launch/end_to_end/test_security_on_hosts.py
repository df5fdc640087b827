"""Who reaches a run's ports and who reads its secrets, on hosts with real sshd and real nftables.

h1 to h3 are the cluster, h4 is a machine on the same network that is none of it.
"""

import secrets
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Iterator, List, Mapping

import pytest

from tests.support.hosts import FakeHosts
from tests.support.hosts.fixture import hosts_here
from tests.support.hosts.host import Host
from tests.support.launch.over_ssh import HostsFile
from tests.support.waiting import eventually

SECRET = secrets.token_hex(16)  # written in no file, this one included
TOLD = "TOKEN_OF_THE_TEST"
WALL = "table inet wall {\n chain incoming {\n type filter hook input priority 0\n }\n}\n"
# A task of nobody's framework: listens where it is told to and writes files as carelessly as a user would.
TASK = f"""
import os, pathlib, socket, sys, time
pathlib.Path(os.environ["LAUNCH_TASK_DIR"], "weights").write_text("1")
print("the environment has", len(os.environ["{TOLD}"]), "characters", flush=True)
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("0.0.0.0", int(sys.argv[1].rsplit(":", 1)[1])))
listener.listen(100)
print("listening", flush=True)
while True:
    time.sleep(1000)
"""
# Another user may not be able to read this Python's modules: what names of hosts take is loaded before.
CONNECT = """
import encodings.idna, os, socket, sys
os.setuid(int((sys.argv + ["0"])[3]))
socket.create_connection((sys.argv[1], int(sys.argv[2])), 1).close()
"""


@pytest.fixture(scope="module")
def hosts() -> Iterator[FakeHosts]:
    with hosts_here(4) as hosts:
        yield hosts


class Guarded(HostsFile):
    """A hosts file for h1 to h3, and the launcher on it."""

    env: Mapping[str, str] = MappingProxyType({TOLD: SECRET})

    def __init__(self, hosts: FakeHosts, folder: Path):
        super().__init__(hosts, folder, "guarded")
        (folder / "task.py").write_text(TASK)
        self.write(guard="nftables")

    def write(self, ps: Any = "h1", **keys: Any) -> None:
        """The hosts file, with these keys more."""
        command, cluster = ["{python}", "task.py", ":2222"], {"ps": [ps], "worker": ["h[2-3]"]}
        self.put(command=command, cluster=cluster, restart={"max": 0}, secrets=[TOLD], **keys)

    @contextmanager
    def up(self) -> Iterator[str]:
        """A detached run, every task of it listening; yields what ``up`` said."""
        began = self.launch("up", "-d")
        try:
            assert began.returncode == 0, began.stdout
            eventually("three listeners", lambda: all(2222 in host.listening_ports() for host in list(self.hosts)[:3]))
            yield began.stdout
        finally:
            self.launch("down")


@pytest.fixture
def cluster(hosts: FakeHosts, tmp_path: Path) -> Iterator[Guarded]:
    yield Guarded(hosts, tmp_path)
    for host in hosts:  # the launcher's code may stay
        host.run(["sh", "-c", "ls -d /root/.launch/* | grep -v '/code$' | xargs rm -rf"])


def reaches(host: Host, other: str, port: int) -> bool:
    """Whether a program on ``host`` can connect to ``other``."""
    return host.run([sys.executable, "-c", CONNECT, other, str(port)]).returncode == 0


def reaches_as(host: Host, user: int, other: str, port: int) -> bool:
    """Whether a program of a user of ``host`` can connect to ``other``."""
    return host.run([sys.executable, "-c", CONNECT, other, str(port), str(user)]).returncode == 0


def running(host: Host, words: str) -> int:
    """The pid of the one program whose command line has ``words``."""
    (found,) = [process.pid for process in host.processes() if words in " ".join(process.argv)]
    return found


def tables(host: Host) -> List[str]:
    """The firewall tables of a host."""
    return host.run(["nft", "list", "tables"]).stdout.splitlines()


def test_only_the_cluster_reaches_a_guarded_run_and_nothing_of_the_guard_is_left(cluster: Guarded) -> None:
    h1, h2, h3, outside = cluster.hosts
    h1.run(["nft", "-f", "-"], stdin=WALL)
    other = h1.popen(
        [sys.executable, "-m", "http.server", "2400"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    with cluster.up():
        assert [len(tables(host)) for host in (h1, h2, h3)] == [2, 1, 1]
        for name, port in (("h1", 2222), ("h2", 2222), ("h2", 2223), ("h3", 2222)):  # 2223: where the lead listens
            assert not reaches(outside, name, port), (name, port)
            assert all(reaches(host, name, port) for host in (h1, h2, h3)), (name, port)
        assert reaches(outside, "h1", 22)
        for name in ("h2", "127.0.0.1", "localhost", h2.address):
            assert not reaches_as(h2, 65534, name, 2222) and not reaches_as(h2, 65534, name, 2223), name
            assert reaches_as(h2, 65534, name, 22) and reaches_as(h2, 0, name, 2222), name
        eventually("a port that is not the run's", lambda: reaches(outside, "h1", 2400))
        other.send_signal(signal.SIGKILL)
        other.communicate()

        h1.run(["nft", "flush", "ruleset"])  # an administrator's own, as when the firewall service is loaded anew
        assert len(tables(h1)) == 1 and not reaches(outside, "h1", 2222)
        h1.run(["nft", "-f", "-"], stdin=WALL)

        h2.run(["kill", "-KILL", str(running(h2, "launch agent of"))])
        eventually("the end of a killed agent's guard", lambda: tables(h2) == [])

        h3.run(["kill", str(running(h3, "nft -i"))])
        eventually("the end of a task without its guard", lambda: h3.listening_ports() == [])
    assert [tables(host) for host in cluster.hosts] == [["table inet wall"], [], [], []]


def test_a_guard_that_a_host_cannot_have_is_refused_before_anything_starts(cluster: Guarded) -> None:
    h2 = cluster.hosts[1]
    nft = h2.run(["which", "nft"]).stdout.strip()
    h2.run(["chmod", "a-x", nft])
    try:
        refused, checked = cluster.launch("up"), cluster.launch("check")
    finally:
        h2.run(["chmod", "a+x", nft])
    assert checked.returncode == 4 and "h2: guard: nftables is not possible here (no nft here)\n" in checked.stdout
    assert "any client of" not in checked.stdout and "healthy: h[1,3] (2 of 3 hosts)" in checked.stdout
    assert refused.returncode == 3, refused.stdout
    assert "h2: guard: nftables is not possible here (no nft here); " in refused.stdout
    assert "h1:" not in refused.stdout
    eventually("the hosts are empty", lambda: not any(host.processes() for host in cluster.hosts))


def test_a_name_that_means_a_public_address_is_refused_by_the_lead_unless_the_file_allows_it(cluster: Guarded) -> None:
    for host in cluster.hosts:
        host.run(["sh", "-c", "grep -q far /etc/hosts || echo 8.8.8.8 far >> /etc/hosts"])
    cluster.write({"host": "h1", "address": "far"})
    refused = cluster.launch("up", "-d")
    assert refused.returncode == 3, refused.stdout
    assert (
        "h2: ps:0: expected an address that the internet cannot reach, found far, which is 8.8.8.8; "
        "give the task a private address, or set guard: nftables, or allow_public: true" in refused.stdout
    )
    cluster.write({"host": "h1", "address": "far"}, allow_public=True)
    with cluster.up():
        assert cluster.hosts[0].listening_ports() == [2222]


def test_a_secret_is_nowhere_but_in_the_environment_of_its_tasks(cluster: Guarded) -> None:
    cluster.write(name="hidden")
    with cluster.up() as said:
        for host in list(cluster.hosts)[:3]:
            shown = host.run(["sh", "-c", "cat /proc/[0-9]*/cmdline; ps -ef"]).stdout
            assert "task.py" in shown and SECRET not in shown
            assert host.run(["grep", "-rlaF", SECRET, "/root/.launch", "/tmp", "/var/log"]).stdout == ""
            assert host.run(["find", "/root/.launch", "!", "-type", "l", "-perm", "/077"]).stdout == ""
            having = host.run(["sh", "-c", f"grep -lF {SECRET} /proc/[0-9]*/environ"]).stdout.split()
            assert having == [f"/proc/{running(host, 'task.py')}/environ"]
        answers = [cluster.launch(*words).stdout for words in (["status", "--json"], ["plan", "--json"], ["logs"])]
        assert TOLD in answers[1]
        assert SECRET not in "".join([said, *answers])


def test_a_secret_that_a_task_prints_as_its_last_word_is_masked_in_what_we_show(cluster: Guarded) -> None:
    (cluster.folder / "task.py").write_text(f"import os; raise SystemExit('no entry with ' + os.environ['{TOLD}'])")
    cluster.write(name="talks")
    failed = cluster.launch("up")
    assert failed.returncode == 1, failed.stdout
    assert "no entry with (secret)" in failed.stdout and SECRET not in failed.stdout
    assert SECRET not in cluster.launch("status", "--json").stdout
    assert "no entry with (secret)" in cluster.launch("logs").stdout
