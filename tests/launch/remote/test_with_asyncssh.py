"""Connections to an SSH server from the package index: keys, logins, gateways and channels where there is no sshd.

``test_over_ssh.py`` has more of it with real sshd on hosts that share nothing; those need root.
"""

import json
import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier, Thread
from typing import Any, Callable, Iterator, List

import pytest

from launch.errors import CannotStart, HostProblem
from launch.fleet import Fleet
from launch.remote.access import Access
from launch.remote.ssh_host import SshHost
from launch.signals import Interrupts
from tests.support.launch.fakes import CODE, spec_of
from tests.support.launch.launcher import LAUNCH
from tests.support.ssh import HOST
from tests.support.ssh.hosts import ServerProcess, SshHosts
from tests.support.ssh.keys import new_key
from tests.support.waiting import PATIENCE_S


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    """The process in which all servers are."""
    process = ServerProcess()
    yield process
    process.close()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, server: ServerProcess) -> Iterator[SshHosts]:
    """Two hosts that nothing happens to."""
    with SshHosts(tmp_path_factory.mktemp("ssh"), server) as hosts:
        hosts.add("h1")
        hosts.add("h2", "  ProxyJump h1\n")
        yield hosts


@pytest.fixture
def hosts(tmp_path: Path, server: ServerProcess) -> Iterator[SshHosts]:
    """Hosts of the test's own."""
    with SshHosts(tmp_path, server) as own:
        yield own


@contextmanager
def access_to(hosts: SshHosts, ask: Callable[[str], str] = lambda path: "", **keys: Any) -> Iterator[Access]:
    access = Access(hosts.settings(**keys), ask)
    try:
        yield access
    finally:
        access.close()


@contextmanager
def logged_in(hosts: SshHosts, name: str, **keys: Any) -> Iterator[SshHost]:
    """A host to which somebody has logged in."""
    with access_to(hosts, **keys) as access:
        host = SshHost(name, sys.executable, access)
        host.prepare()
        try:
            host.connect()
            yield host
        finally:
            host.close()


def answer(host: SshHost, *argv: str) -> Any:
    """What a program there prints, which is JSON."""
    channel = host.open(list(argv))
    try:
        return channel.receive_line(PATIENCE_S)
    finally:
        channel.close()


def home_of(host: SshHost) -> str:
    """The home over there, which is another one on each host."""
    return str(answer(host, "sh", "-c", 'echo "{\\"home\\": \\"$HOME\\"}"')["home"])


def refusal(hosts: SshHosts, name: str, **keys: Any) -> str:
    """Why nobody gets there."""
    with pytest.raises(HostProblem) as caught, logged_in(hosts, name, **keys):
        pass
    return str(caught.value)


# ---- host keys


def test_an_unknown_host_key_is_refused_before_any_login_and_the_way_to_accept_it_is_named(hosts: SshHosts) -> None:
    h1 = hosts.add("h1")
    hosts.known.write_text("")
    told = refusal(hosts, "h1")
    assert told.startswith(f"h1: its host key is not in {hosts.known}; verify the key, then accept it with `ssh ")
    assert f"UserKnownHostsFile={hosts.known} " in told and told.endswith(f" -p {h1.port} h1 true`")
    assert h1.count("login") == 0


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa"])
def test_a_changed_host_key_is_refused_before_any_login(hosts: SshHosts, tmp_path: Path, kind: str) -> None:
    h1 = hosts.add("h1")
    other = new_key(tmp_path / "other", kind=kind)
    hosts.known.write_text(f"[{HOST}]:{h1.port} {Path(f'{other}.pub').read_text()}")
    told = refusal(hosts, "h1")
    assert told.startswith(f"h1: its host key differs from the one in {hosts.known}: ")
    assert f"`ssh-keygen -R '[{HOST}]:{h1.port}' -f {hosts.known}" in told
    assert h1.count("login") == 0


def test_a_host_key_is_looked_up_by_its_alias(hosts: SshHosts) -> None:
    h1 = hosts.add("h1", "  HostKeyAlias one\n")
    hosts.known.write_text("one " + h1.known().split(" ", 1)[1])
    with logged_in(hosts, "h1") as host:
        assert home_of(host) == str(h1.home)


# ---- logins


def test_a_key_that_is_not_authorized_is_a_refused_login(pair: SshHosts, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(pair.config.read_text().replace(str(pair.key), str(new_key(tmp_path / "stranger"))))
    told = refusal(pair, "h1", config=str(config))
    assert told.startswith("h1: login refused (") and "check the values of ssh.user and ssh.key" in told


@pytest.mark.parametrize("kind", ["rsa", "ecdsa"])
def test_a_key_of_another_kind_opens_a_host_too(hosts: SshHosts, kind: str) -> None:
    new_key(hosts.key, kind=kind)
    h1 = hosts.add("h1")
    with logged_in(hosts, "h1") as host:
        assert home_of(host) == str(h1.home)


def test_the_passphrase_of_a_key_is_asked_for_once_for_all_hosts(hosts: SshHosts) -> None:
    new_key(hosts.key, passphrase="correct horse")
    asked: List[str] = []

    def ask(path: str) -> str:
        asked.append(path)
        return "correct horse"

    names = [hosts.add(name).name for name in ("h1", "h2")]
    with access_to(hosts, ask) as access:
        for name in names:
            access.prepare(name)
            access.open(name).close()
    assert asked == [str(hosts.key)]


def test_logins_that_a_busy_server_drops_are_tried_again_until_all_are_in(hosts: SshHosts) -> None:
    h1 = hosts.add("h1", drop=3)
    together, homes = Barrier(4), []

    def come() -> None:
        together.wait(PATIENCE_S)
        with logged_in(hosts, "h1") as host:
            homes.append(home_of(host))

    threads = [Thread(target=come) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert homes == [str(h1.home)] * 4
    assert (h1.count("drop"), h1.count("login")) == (3, 4)


def test_a_server_that_drops_every_login_is_named_in_time(hosts: SshHosts) -> None:
    h1 = hosts.add("h1", drop=1_000_000)
    told = refusal(hosts, "h1", connect_timeout_s=1)
    assert told.startswith(f"h1: {HOST} port {h1.port} drops every login (")


def test_a_port_where_nobody_listens_is_named(hosts: SshHosts) -> None:
    gone = hosts.add("h1")
    hosts.close(gone)
    told = refusal(hosts, "h1", connect_timeout_s=1)
    assert told.startswith(f"h1: no SSH at {HOST} port {gone.port} (") and told.endswith(
        "check that the host is up and runs sshd"
    )


# ---- gateways


def fleet_of(hosts: SshHosts, *names: str, **keys: Any) -> Fleet:
    tasks = (f"worker:{index}@{name}" for index, name in enumerate(names))
    spec = spec_of(*tasks, ssh=hosts.settings(**keys))
    return Fleet(spec, dict.fromkeys(names, sys.executable), CODE, Interrupts())


def test_a_gateway_is_logged_in_to_once_for_all_hosts_behind_it(hosts: SshHosts) -> None:
    gateway, *behind = [hosts.add(name) for name in ("gw", "h1", "h2", "h3")]
    with fleet_of(hosts, "h1", "h2", "h3", gateway="gw") as fleet:
        fleet.connect()
    assert [host.count("login") for host in (gateway, *behind)] == [1, 1, 1, 1]


def test_gateways_of_gateways_are_passed_in_turn(hosts: SshHosts) -> None:
    hosts.add("h1")
    hosts.add("h2", "  ProxyJump h1\n")
    last = hosts.add("h3", "  ProxyJump h2\n")
    with logged_in(hosts, "h3") as host:
        assert home_of(host) == str(last.home)


def test_a_gateway_with_an_unknown_key_is_refused_and_named_once(hosts: SshHosts) -> None:
    hosts.add("gw")
    hosts.known.write_text("")
    hosts.add("h1"), hosts.add("h2")
    with fleet_of(hosts, "h1", "h2", gateway="gw") as fleet, pytest.raises(CannotStart) as caught:
        fleet.connect()
    told = str(caught.value)
    assert told.startswith(f"gw: its host key is not in {hosts.known}; ")
    assert told.endswith("; it is the gateway to other hosts") and "\n" not in told


def test_a_host_that_its_gateway_cannot_reach_is_named_itself(hosts: SshHosts) -> None:
    hosts.add("gw")
    gone = hosts.add("h1")
    hosts.close(gone)
    told = refusal(hosts, "h1", gateway="gw")
    assert told.startswith(f"h1: the gateway cannot reach {HOST} port {gone.port} (")


# ---- programs and ports


def test_words_reach_a_program_as_they_are_and_standard_input_too(pair: SshHosts) -> None:
    words = ["a b", "$HOME", "'", '"', "`x`", "\\", "a;b", "*", "", "ä"]
    script = "import json, sys; print(json.dumps({'words': sys.argv[1:], 'read': sys.stdin.read()}))"
    with logged_in(pair, "h2") as host:
        channel = host.open([sys.executable, "-c", script, *words])
        channel.send(b"x" * 300_000)
        channel.end()
        assert channel.receive_line(PATIENCE_S) == {"words": words, "read": "x" * 300_000}
        channel.close()


def test_what_a_program_complains_of_is_told(pair: SshHosts) -> None:
    with logged_in(pair, "h1") as host:
        channel = host.open(["sh", "-c", "echo no such thing >&2; exit 3"])
        assert channel.receive_line(PATIENCE_S) is None
        assert channel.complaint() == "no such thing"
        channel.close()


def test_a_port_over_there_is_dialled_through_the_connection(pair: SshHosts) -> None:
    with socket.socket() as listening, logged_in(pair, "h2") as host:
        listening.bind((HOST, 0))
        listening.listen(1)
        near = host.dial(listening.getsockname()[1])
        listening.settimeout(PATIENCE_S)
        far, _ = listening.accept()
        near.sendall(b"hello")
        assert far.recv(5) == b"hello"
        far.close()
        near.close()


def test_a_server_without_sessions_or_forwarding_is_named_with_the_setting_to_see(hosts: SshHosts) -> None:
    hosts.add("h1", sessions=False, forwarding=False)
    with logged_in(hosts, "h1") as host:
        with pytest.raises(HostProblem, match=r"h1: sshd opens no further session \(.*\); raise MaxSessions in its"):
            host.open(["true"])
        with pytest.raises(HostProblem, match=r"port 80 there \(.*\); set AllowTcpForwarding yes in its sshd_config"):
            host.dial(80)


# ---- as a person runs it


def test_without_a_terminal_the_command_that_unlocks_the_key_is_told(hosts: SshHosts) -> None:
    new_key(hosts.key, passphrase="correct horse")
    hosts.add("h1")
    file = hosts.folder / "one.yaml"
    file.write_text(json.dumps({"name": "r", "command": ["true"], "cluster": {"worker": ["h1"]}, "ssh": hosts.keys()}))
    ran = subprocess.run(
        [*LAUNCH, "down", str(file)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        start_new_session=True, env={**os.environ, "SSH_AUTH_SOCK": ""}, timeout=PATIENCE_S,
    )  # fmt: skip
    assert ran.returncode == 3
    assert f"and there is no terminal to ask for it; unlock it with `ssh-add {hosts.key}`" in ran.stderr


def test_commands_run_before_a_program_in_its_shell(pair: SshHosts) -> None:
    with access_to(pair) as access:
        host = SshHost("h1", sys.executable, access, ["export OWN=4711"])
        host.prepare()
        try:
            assert answer(host, "sh", "-c", 'echo "{\\"own\\": $OWN}"') == {"own": 4711}
        finally:
            host.close()
