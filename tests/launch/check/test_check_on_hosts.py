"""``launch check`` on eight hosts, each broken in a way of its own: every finding made on purpose, and found."""

import json
import shlex
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

from tests.support.hosts import FakeHosts
from tests.support.hosts.fixture import hosts_here
from tests.support.launch.launcher import run_here
from tests.support.waiting import eventually

DEADLINE_S = 20.0
SAY_UP = "import os; print(os.getpid(), flush=True)"
TAKE_PORT = f"import socket; s = socket.socket(); s.bind(('', 2222)); s.listen(1); {SAY_UP}; s.accept()"
PROXY = f"""
import socket
s = socket.socket(); s.bind(("", 9999)); s.listen(9); {SAY_UP}
while True:
    c, _ = s.accept(); c.recv(99); c.sendall(b"HTTP/1.1 400 Bad Request\\r\\n"); c.close()
"""
# A Python whose clock is a minute and a half ahead.
FAST = f"""#!/bin/sh
until [ "$1" = -c ]; do shift; done
shift
exec {shlex.quote(sys.executable)} -c '
import sys, time
real = time.time
time.time = lambda: real() + 90
exec(sys.argv.pop(1))' "$@"
"""
FILE = """
name: eight
job: digits
cluster:
  ps: [h1, {{host: h2{h2}}}]
  worker: ["h[3-4]", {{host: h5{h5}}}, {{host: h6{h6}}}, "h[7-8]"]
python: {python}
env: {{all: {{PYTHONPATH: /opt/stub}}}}  # a TensorFlow that has a version, and loads at once
ssh: {{config: {hosts.ssh_config}, known_hosts: {hosts.known_hosts}, connect_timeout_s: 5}}
"""


@pytest.fixture(scope="module")
def hosts() -> Iterator[FakeHosts]:
    """Eight hosts with TensorFlow 1.15.0."""
    with hosts_here(8) as eight:
        for host in eight:
            install(host, "1.15.0")
        yield eight


def install(host: Any, version: str) -> None:
    """A TensorFlow of this version on a fake host."""
    host.write("/opt/stub/tensorflow/__init__.py", f"__version__ = '{version}'\n")


@contextmanager
def serving(host: Any, script: str) -> Iterator[int]:
    """A server on a fake host, from when it listens; its pid there."""
    with host.popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as server:
        try:
            yield int(server.stdout.readline())
        finally:
            server.kill()


def check(hosts: FakeHosts, folder: Path, *arguments: str, **entries: str) -> "subprocess.CompletedProcess[str]":
    """``launch check`` on the eight; ``entries`` are further keys of a host."""
    file = folder / "eight.yaml"
    file.write_text(FILE.format(hosts=hosts, python=sys.executable, **{"h2": "", "h5": "", "h6": "", **entries}))
    return run_here("check", str(file), *arguments)


def ours(host: Any) -> List[Any]:
    """The check's processes on a host, which hold its listeners."""
    return [process for process in host.processes() if "io.FileIO" in str(process.argv)]


def finds(hosts: FakeHosts, folder: Path, *arguments: str, **entries: str) -> Dict[str, Any]:
    """What a check finds wrong; it leaves nothing on the hosts."""
    ran = check(hosts, folder, "--json", *arguments, **entries)
    assert ran.returncode == 4, ran.stderr + ran.stdout
    eventually("nothing of the check on any host", lambda: not [one for host in hosts for one in ours(host)])
    found: Dict[str, Any] = json.loads(ran.stdout)
    return found


def sentences(found: Dict[str, Any]) -> Dict[str, List[str]]:
    """{kind: ["hosts: what"]}"""
    kinds: Dict[str, List[str]] = {}
    for finding in found["findings"]:
        kinds.setdefault(finding["kind"], []).append(f"{','.join(finding['hosts'])}: {finding['what']}")
    return kinds


def mends(found: Dict[str, Any]) -> Dict[str, str]:
    """{kind: what mends it}"""
    return {finding["kind"]: finding["mend"] for finding in found["findings"]}


def healthy(found: Dict[str, Any]) -> List[str]:
    return sorted(host["host"] for host in found["hosts"] if host["ok"])


def test_eight_healthy_hosts_are_one_line(hosts: FakeHosts, tmp_path: Path) -> None:
    ran = check(hosts, tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    note, summary = ran.stdout.splitlines()
    assert "can run code as this user" in note and "h[1-8]" in note
    assert summary.startswith("healthy: h[1-8] (8 of 8 hosts): Python 3.")
    assert "TensorFlow 1.15.0, numpy " in summary


def test_broken_machines_are_named_with_what_is_wrong_and_the_others_are_healthy(
    hosts: FakeHosts, tmp_path: Path
) -> None:
    _, h2, _, h4, _, h6, _, h8 = hosts
    h2.run(["rm", "-rf", "/root/.launch"])
    assert h2.run(["mkdir", "/root/.launch"]).returncode == 0
    assert h2.run(["mount", "-t", "tmpfs", "-o", "size=64k", "full", "/root/.launch"]).returncode == 0
    install(h4, "2.4.1")
    hosts.change_host_key(6)
    h8.unplug()
    try:
        with serving(h6, TAKE_PORT) as pid:
            found = finds(hosts, tmp_path, h5=", python: python9.9")
    finally:
        h8.plug()
        h2.run(["umount", "/root/.launch"])
        install(h4, "1.15.0")
    said = sentences(found)
    assert set(said) == {"disk", "tensorflow-differs", "python", "port", "host-key", "unreachable"}
    full = "h2: cannot write the code under /root/.launch/code: No space left on device; the disk at /root/.launch has "
    assert [line[: len(full)] for line in said["disk"]] == [full]
    assert said["tensorflow-differs"] == ["h4: TensorFlow 1.15.0: h[1,3,6] | 2.4.1: h4"]
    assert said["python"][0].startswith("h5: no python9.9 there")
    assert said["port"][0].startswith(f"h6: port 2222 of worker:3 is taken by pid {pid} ({sys.executable} -c")
    assert said["host-key"][0].startswith("h7: its host key differs from the one in ")
    assert said["unreachable"][0].startswith("h8: no answer from ")
    assert "df -h ~/.launch" in mends(found)["disk"]
    assert f"`ssh h6 kill {pid}`" in mends(found)["port"]
    assert "ssh-keygen -R" in mends(found)["host-key"]
    assert healthy(found) == ["h1", "h3"]


def test_ways_that_are_closed_are_told_apart_and_a_wrong_clock_is_found(hosts: FakeHosts, tmp_path: Path) -> None:
    h1, h2, h3, h4, h5, _, h7, h8 = hosts
    known = hosts.known_hosts.read_text().splitlines(keepends=True)
    hosts.known_hosts.write_text("".join(line for line in known if h7.address not in line))
    wall = f"""
    table inet wall {{
     chain incoming {{
      type filter hook input priority 0
      ip saddr {h3.address} tcp dport 2222 drop
      ip saddr {h4.address} tcp dport 2222 reject
     }}
     chain detour {{
      type nat hook prerouting priority -100
      ip saddr {h8.address} tcp dport 2222 redirect to :9999
     }}
    }}
    """
    assert h1.run(["nft", "-f", "-"], stdin=wall).returncode == 0
    h2.write("/opt/fast", FAST, 0o755)
    h5.write("/etc/hosts", f"127.0.0.1 localhost\n{h2.address} h1\n127.0.1.1 h2\n")
    with serving(h1, PROXY):
        found = finds(hosts, tmp_path, h2=", python: /opt/fast")
    said = sentences(found)
    assert said["timed-out"] == [f"h1: h3 → h1:2222: no answer ({h1.address}, 5 s): a firewall may drop it"]
    assert said["refused"][0].startswith("h1: h4 → h1:2222: refused although the check listened there")
    assert said["other"][0].startswith("h1: h8 → h1:2222: answered by something other than the check")
    assert "'HTTP/1.1 400 Bad Request'" in said["other"][0]
    assert said["wrong-host"] == ["h5: h5 → h1:2222: answered by h2 port 2222: the address is not that of h1"]
    assert said["loopback"][0].startswith("h5: h5 → h2:2222: the name means the dialling host itself (127.0.1.1)")
    assert said["unresolved"][0].startswith("h5: h5 → h3:2223: the name has no address there")
    assert said["host-key"][0].startswith("h7: its host key is not in ")
    assert said["clock"][0].startswith("h2: its clock is 90.0 s ahead of this machine's")
    assert "ssh h1 sudo nft list ruleset" in mends(found)["timed-out"]
    assert healthy(found) == ["h3", "h4", "h6", "h8"]


def test_a_host_that_hangs_is_named_by_the_deadline(hosts: FakeHosts, tmp_path: Path) -> None:
    hosts[5].write("/opt/hung", "#!/bin/sh\nexec sleep 1000\n", 0o755)
    found = finds(hosts, tmp_path, "--include", "h[2,6]", "--deadline-s", str(DEADLINE_S), h6=", python: /opt/hung")
    assert sentences(found) == {"slow": [f"h6: no answer within {DEADLINE_S / 2:.0f} s"]}
    assert healthy(found) == ["h2"]
