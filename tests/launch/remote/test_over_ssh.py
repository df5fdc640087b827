"""Connections to real sshd: dropped logins, gateways, what an SSH configuration says, passphrases on a terminal."""

import json
import os
import pty
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier, Thread
from typing import Any, Iterator, List

import pytest

from cluster.spec.model import Ssh
from launch.agent.linux import processes
from launch.agent.linux.open_files import readable
from launch.errors import CannotStart, HostProblem
from launch.fleet import Fleet
from launch.hosts.bundle import launcher_code
from launch.remote.access import Access
from launch.remote.ssh_host import SshHost
from launch.signals import Interrupts
from tests.support.hosts import FakeHosts
from tests.support.hosts.fixture import hosts_here
from tests.support.hosts.ssh_files import ALL, SshFiles, each
from tests.support.hosts.sshd import logins, signed, sshd
from tests.support.launch.fakes import CODE, spec_of
from tests.support.launch.launcher import LAUNCH
from tests.support.ssh.keys import new_key
from tests.support.ssh.security_key import SecurityKeyAgent
from tests.support.waiting import PATIENCE_S, eventually

SECRET = "correct horse"


@pytest.fixture(scope="module")
def hosts() -> Iterator[FakeHosts]:
    """Four hosts. This machine knows them by address alone; each other they know by name."""
    with hosts_here(4) as four:
        yield four


class Operator(SshFiles):
    """Somebody's files: an SSH configuration, known hosts, keys."""

    def settings(self, **keys: Any) -> Ssh:
        return Ssh(**{"config": str(self.config), "known_hosts": str(self.known), **keys})

    @contextmanager
    def access(self, **keys: Any) -> Iterator[Access]:
        access = Access(self.settings(**keys), ask=lambda path: "")
        try:
            yield access
        finally:
            access.close()

    def named(self, name: str, **keys: Any) -> str:
        """The name that a host says it has, asked over SSH."""
        with self.access(**keys) as access:
            access.prepare(name)
            return said(access, name)

    def fleet(self, *names: str, **keys: Any) -> Fleet:
        spec = spec_of(*(f"worker:{index}@{name}" for index, name in enumerate(names)), ssh=self.settings(**keys))
        return Fleet(spec, dict.fromkeys(names, "python3"), CODE, Interrupts())


def said(access: Access, name: str) -> str:
    host = SshHost(name, "python3", access)
    try:
        channel = host.open(["sh", "-c", 'echo "{\\"name\\": \\"$(hostname)\\"}"'])
        answer = channel.receive_line(PATIENCE_S)
        return str(answer and answer["name"])
    finally:
        host.close()


@pytest.fixture
def operator(hosts: FakeHosts, tmp_path: Path) -> Operator:
    return Operator(hosts, tmp_path)


EACH = each(4)


def test_logins_that_a_busy_sshd_drops_are_tried_again_until_all_are_in(operator: Operator, hosts: FakeHosts) -> None:
    operator.write(EACH + ALL)
    together, names = Barrier(12), []

    def come(access: Access) -> None:
        together.wait(PATIENCE_S)
        names.append(said(access, "h1"))

    with sshd(hosts[0], "MaxStartups 1:100:2\n"), operator.access(connect_timeout_s=15) as access:
        access.prepare("h1")
        threads = [Thread(target=come, args=(access,)) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
    assert names == ["h1"] * 12
    assert "drop connection" in hosts[0].read("/var/log/sshd.log")


def test_a_gateway_is_logged_in_to_once_for_all_hosts_behind_it(operator: Operator, hosts: FakeHosts) -> None:
    operator.write("Host h1\n  HostName {h1}\n" + ALL)  # the others are names that only h1 knows
    before = logins(hosts[0])
    with operator.fleet("h2", "h3", "h4", gateway="h1") as fleet:
        fleet.connect()
        assert logins(hosts[0]) == before + 1


def test_gateways_of_gateways_are_passed_in_turn(operator: Operator, hosts: FakeHosts) -> None:
    operator.write("Host h1\n  HostName {h1}\nHost h2\n  ProxyJump h1\nHost h3\n  ProxyJump root@h2:22\n" + ALL)
    before = [logins(host) for host in hosts]
    assert operator.named("h3") == "h3"
    assert [logins(host) - former for host, former in zip(hosts, before)] == [1, 1, 1, 0]
    assert operator.named("h4", gateway="h1,h2") == "h4"


def test_a_gateway_with_an_unknown_key_is_refused_and_named_once(operator: Operator) -> None:
    operator.write(EACH + ALL)
    known = operator.known.read_text().splitlines(True)
    operator.known.write_text("".join(line for line in known if not line.startswith("h1,")))
    with operator.fleet("h2", "h3", "h4", gateway="h1") as fleet, pytest.raises(CannotStart) as caught:
        fleet.connect()
    text = str(caught.value)
    assert text.startswith(f"h1: its host key is not in {operator.known}; verify the key, then accept it with `ssh ")
    assert text.endswith("; it is the gateway to other hosts") and "\n" not in text


def test_a_host_that_its_gateway_cannot_reach_is_named_itself(operator: Operator) -> None:
    operator.write("Host h1\n  HostName {h1}\n" + ALL)
    with operator.fleet("h2", "h9", gateway="h1") as fleet, pytest.raises(CannotStart) as caught:
        fleet.connect()
    assert str(caught.value).startswith("h9: the gateway cannot reach h9 port 22 (")


def test_a_proxy_command_is_run_for_the_host(operator: Operator, hosts: FakeHosts) -> None:
    by_shell = '2>/dev/null || exit $(test -n "$HOME")'
    operator.write(f"Host h2\n  ProxyCommand ssh -F {hosts.ssh_config} -W {{h2}}:%p h1 {by_shell}\n" + ALL)
    before = logins(hosts[0])
    assert operator.named("h2") == "h2"
    assert logins(hosts[0]) == before + 1


def test_a_gateway_behind_a_proxy_command_carries_its_hosts_and_leaves_no_process(
    operator: Operator, hosts: FakeHosts
) -> None:
    gateway = f"ssh -F {hosts.ssh_config} -W"
    # h3 is a name of h1's
    operator.write(f"Host h1\n  ProxyCommand {gateway} {{h1}}:%p h2\nHost h3\n  ProxyJump h1\n" + ALL)
    assert operator.named("h3") == "h3"
    assert [each.pid for each in processes.table() if gateway in processes.command_line(each.pid)] == []


def test_the_known_hosts_are_those_of_the_ssh_configuration_where_the_hosts_file_names_none(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ssh, "known_hosts", str(operator.known))
    other = operator.known.with_name("others_known")
    operator.write(f"Host *\n  UserKnownHostsFile {other} /dev/null\nHost h2\n  HostName {{h2}}\n" + ALL)
    with pytest.raises(HostProblem, match=f"its host key is not in {other}"):
        operator.named("h2")
    other.write_text(operator.known.read_text())
    assert operator.named("h2") == "h2"


def test_the_settings_of_a_host_are_those_of_the_ssh_configuration(operator: Operator, hosts: FakeHosts) -> None:
    """HostName, Port, User, IdentityFile with IdentitiesOnly, HostKeyAlias, and a hashed known_hosts."""
    operator.write(
        "Host node7\n  HostName {h2}\n  Port 2200\n  User root\n  IdentityFile {key}\n  IdentitiesOnly yes\n"
        "  HostKeyAlias seven\nHost *\n  User nobody\n  Port 9\n"
    )
    line = next(line for line in operator.known.read_text().splitlines() if line.startswith("h2,"))
    operator.known.write_text("seven " + line.split(" ", 1)[1] + "\n")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(operator.known)], check=True, stderr=subprocess.DEVNULL)
    assert "seven" not in operator.known.read_text()
    with sshd(hosts[1], "Port 2200\n"):
        assert operator.named("node7") == "h2"


# -- commands of an error, as they are printed


def told(operator: Operator, name: str, **keys: Any) -> List[str]:
    """The commands of the error that a host gives."""
    with pytest.raises(HostProblem) as caught:
        operator.named(name, **keys)
    commands: List[str] = str(caught.value).split("`")[1::2]
    return commands


def typed(command: str) -> None:
    """Types a command into a terminal, and "yes" as often as it is asked for."""
    pid, terminal = pty.fork()
    if not pid:
        os.execve("/bin/sh", ["sh", "-c", command], {**os.environ, "SSH_AUTH_SOCK": ""})
    read: List[bytes] = []
    answered = 0

    def is_over() -> bool:
        nonlocal answered
        if heard(terminal, read).count(b"(yes/no") > answered:
            answered += 1
            os.write(terminal, b"yes\n")
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    eventually("the end of the command", is_over)
    text = heard(terminal, read).decode()
    os.close(terminal)
    assert os.waitpid(pid, 0)[1] == 0, f"{command}: {text}"


ALIASED = "Host node7\n  HostName {h2}\n  HostKeyAlias seven\n" + ALL


def test_the_command_for_an_unknown_key_records_it_under_the_name_that_is_looked_up(operator: Operator) -> None:
    operator.write(ALIASED)
    operator.known.write_text("")
    typed(*told(operator, "node7"))
    assert operator.known.read_text().startswith("seven ")
    assert operator.named("node7") == "h2"


def test_the_commands_for_a_changed_key_replace_it_under_the_name_that_is_looked_up(operator: Operator) -> None:
    operator.write(ALIASED)
    others = next(line for line in operator.known.read_text().splitlines() if line.startswith("h1,"))
    operator.known.write_text("seven " + others.split(" ", 1)[1] + "\n")
    for command in told(operator, "node7"):
        typed(command)
    assert operator.named("node7") == "h2"


@pytest.mark.parametrize("jump", ["configured", "given"])
def test_the_command_for_a_host_behind_a_gateway_goes_through_it(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, jump: str
) -> None:
    through = "" if jump == "given" else "Host h3\n  ProxyJump h1\n"
    known = f"Host h1\n  UserKnownHostsFile {operator.known}\n"  # OpenSSH's own, for the gateway
    operator.write("Host h1\n  HostName {h1}\n" + known + through + ALL)  # h3 is a name that only h1 knows
    operator.known.write_text(
        "".join(line for line in operator.known.read_text().splitlines(True) if line[:3] == "h1,")
    )
    keys = {"gateway": "h1"} if jump == "given" else {}
    typed(*told(operator, "h3", **keys))
    assert operator.named("h3", **keys) == "h3"


def test_the_command_for_a_refused_login_is_tried_by_the_same_user_at_the_same_port(
    operator: Operator, hosts: FakeHosts
) -> None:
    operator.write(EACH + ALL)
    command = told(operator, "h2", user="mallory")[0]
    ran = subprocess.run(command, shell=True, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=PATIENCE_S)
    assert ran.returncode == 255 and b"mallory@" in ran.stderr


def test_of_several_host_keys_the_known_kind_is_asked_for(operator: Operator, hosts: FakeHosts) -> None:
    operator.write(EACH + ALL)
    rsa = operator.folder / "rsa"
    subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-N", "", "-f", str(rsa)], check=True)
    hosts[2].write("/etc/ssh/rsa", rsa.read_text(), 0o600)
    operator.known.write_text(f"{hosts[2].address} {rsa.with_suffix('.pub').read_text()}")
    with sshd(hosts[2], "HostKey /etc/ssh/rsa\n"):
        assert operator.named("h3") == "h3"
    with pytest.raises(HostProblem, match="its host key differs from the one in"):
        operator.named("h3")


def test_without_a_configuration_none_is_read(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    operator.write("Host h1.invalid\n  HostName {h1}\n" + ALL)
    (operator.folder / ".ssh").mkdir()
    operator.config.rename(operator.folder / ".ssh" / "config")
    monkeypatch.setenv("HOME", str(operator.folder))
    with pytest.raises(HostProblem, match=r"this machine cannot resolve the name h1\.invalid"):
        operator.named("h1.invalid", config=None)


# -- passphrases, as a person meets them


@pytest.fixture
def locked(operator: Operator, hosts: FakeHosts) -> Path:
    """A hosts file of three hosts that a key with a passphrase opens."""
    key = operator.folder / "locked"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-a", "1", "-N", SECRET, "-f", str(key)], check=True)
    for host in hosts:
        opened = host.read("~/.ssh/authorized_keys") + key.with_suffix(".pub").read_text()
        host.write("~/.ssh/authorized_keys", opened, 0o600)
    operator.write(EACH + "Host *\n  User root\n")
    ssh = {"config": str(operator.config), "known_hosts": str(operator.known), "key": str(key)}
    values = {"name": "r", "command": ["true"], "cluster": {"worker": ["h[1-3]"]}, "python": sys.executable, "ssh": ssh}
    file = operator.folder / "three.yaml"
    file.write_text(json.dumps(values))
    return file


def test_a_passphrase_is_asked_for_once_on_the_terminal_before_any_host_is_reached(locked: Path) -> None:
    pid, terminal = pty.fork()
    if not pid:
        os.execve(sys.executable, [*LAUNCH, "down", str(locked)], {**os.environ, "SSH_AUTH_SOCK": ""})
    read: List[bytes] = []
    eventually("the question", lambda: b"passphrase of" in heard(terminal, read))
    os.write(terminal, SECRET.encode() + b"\n")
    eventually("the end", lambda: os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT))
    text = heard(terminal, read).decode()
    os.close(terminal)
    assert os.waitpid(pid, 0)[1] == 0, text
    assert text.count("passphrase of") == 1 and SECRET not in text
    assert "h[1-3]: no run of this name has been here" in text


def heard(terminal: int, read: List[bytes]) -> bytes:
    """What the terminal has shown so far."""
    while readable(terminal, 0.0):
        try:
            data = os.read(terminal, 65536)
        except OSError:  # its program has ended
            break
        read.append(data)
    return b"".join(read)


def test_without_a_terminal_the_command_to_unlock_the_key_is_told(locked: Path) -> None:
    env = {**os.environ, "SSH_AUTH_SOCK": ""}
    ran = subprocess.run(
        [*LAUNCH, "down", str(locked)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        start_new_session=True, env=env, timeout=PATIENCE_S,
    )  # fmt: skip
    assert ran.returncode == 3
    assert "and there is no terminal to ask for it; unlock it with `ssh-add " in ran.stderr


def test_a_login_shell_that_prints_is_no_obstacle(operator: Operator, hosts: FakeHosts) -> None:
    operator.write(EACH + ALL)
    hosts[0].write("/root/.bashrc", "echo Welcome to $(hostname); printf '%s' 'loading modules ... '\n")
    try:
        with operator.fleet("h1") as fleet:
            fleet.code = launcher_code()
            answers, problems = fleet.ask("find", {"h1": fleet.reference("h1")}, PATIENCE_S)
    finally:
        hosts[0].run(["rm", "/root/.bashrc"])
    assert (answers["h1"]["run"], answers["h1"]["highest"], problems) == (None, 0, [])


def test_a_certificate_beside_its_key_logs_in_and_that_of_a_host_needs_the_program_ssh(
    operator: Operator, hosts: FakeHosts
) -> None:
    h3, folder = hosts[2], operator.folder
    host_key = h3.read("/etc/ssh/ssh_host_ed25519_key.pub")
    h3.write("/etc/ssh/host-cert.pub", signed(folder, host_key, "-h", "-n", h3.address))
    own = new_key(folder / "own")
    (folder / "own-cert.pub").write_text(signed(folder, Path(f"{own}.pub").read_text(), "-n", "root"))
    authority = (folder / "authority.pub").read_text()
    h3.write("/etc/ssh/authority.pub", authority)
    operator.write(EACH + "Host *\n  User root\n  IdentityFile {folder}/own\n")
    with sshd(h3, "HostCertificate /etc/ssh/host-cert.pub\nTrustedUserCAKeys /etc/ssh/authority.pub\n"):
        assert operator.named("h3") == "h3"
        operator.known.write_text(f"@cert-authority 10.* {authority}")
        with pytest.raises(HostProblem, match=r"signs its key \(@cert-authority\): set `ssh.transport: openssh`"):
            operator.named("h3")


def test_a_security_key_names_the_transport_that_can_use_it(
    operator: Operator, hosts: FakeHosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator.write(EACH + "Host *\n  User root\n  IdentityFile {folder}/none\n")
    with SecurityKeyAgent(operator.folder / "agent") as agent:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(agent.path))
        with pytest.raises(HostProblem, match=r"no key to offer.*security key.* set `ssh.transport: openssh`"):
            operator.named("h2")


def test_a_login_that_sshd_ends_after_a_refused_key_is_not_tried_again(operator: Operator, hosts: FakeHosts) -> None:
    """OpenSSH 9.8 keeps out for longer with each further refusal (PerSourcePenalties)."""
    new_key(operator.folder / "stranger")
    operator.write(EACH + "Host *\n  User root\n  IdentityFile {folder}/stranger\n  IdentitiesOnly yes\n")
    with sshd(hosts[3], "MaxAuthTries 1\n"):
        with pytest.raises(HostProblem, match="login refused"):
            operator.named("h4")
        refused = "Too many authentication failures"  # which sshd may write after the client has failed
        eventually("the refusal in its log", lambda: refused in hosts[3].read("/var/log/sshd.log"))
        assert hosts[3].read("/var/log/sshd.log").count(refused) == 1
