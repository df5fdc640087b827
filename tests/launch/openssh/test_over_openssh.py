"""Hosts by the program ``ssh``, with a real sshd: certificates, security keys, second factors, gateways, ends."""

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, Dict, Iterator, List

import pytest

from cluster.spec.model import Ssh
from launch.agent.linux import processes
from launch.errors import HostProblem
from launch.hosts import rpc
from launch.hosts.bundle import launcher_code
from launch.openssh import openssh_host, ssh_program
from launch.openssh.openssh_host import Logins, OpensshHost
from tests.support.hosts import FakeHosts, Host
from tests.support.hosts.fixture import hosts_here
from tests.support.hosts.ssh_files import ALL, SshFiles, each
from tests.support.hosts.sshd import logins, signed, sshd
from tests.support.launch.launcher import LAUNCH
from tests.support.ssh.keys import new_key
from tests.support.ssh.security_key import SecurityKeyAgent
from tests.support.waiting import PATIENCE_S, eventually

EACH = each(3)


@pytest.fixture(scope="module")
def hosts() -> Iterator[FakeHosts]:
    """Three hosts. This machine knows them by address alone; each other they know by name."""
    with hosts_here(3) as three:
        yield three


class Operator(SshFiles):
    """Somebody's files and environment: an SSH configuration, known hosts, keys, perhaps an agent."""

    def __init__(self, hosts: FakeHosts, folder: Path):
        super().__init__(hosts, folder)
        self.environ = {**os.environ, "SSH_AUTH_SOCK": ""}

    def settings(self, **keys: Any) -> Dict[str, Any]:
        config = {"config": str(self.config), "known_hosts": str(self.known), "connect_timeout_s": 10}
        return {"transport": "openssh", **config, **keys}

    @contextmanager
    def host(self, name: str, python: str = sys.executable, **keys: Any) -> Iterator[OpensshHost]:
        found = Logins(Ssh(**self.settings(**keys)), ssh_program.environment(self.environ, ()))
        host = OpensshHost(name, python, found)
        try:
            yield host
        finally:
            host.close()
            found.close()

    def problem(self, name: str, **keys: Any) -> HostProblem:
        with self.host(name, **keys) as host, pytest.raises(HostProblem) as caught:
            ask(host)
        return caught.value

    def file(self, **ssh: Any) -> Path:
        """A hosts file of two workers that wait."""
        command = ["sh", "-c", "echo begun; exec sleep 600"]
        values = {"name": "r", "command": command, "cluster": {"worker": ["h[1-2]"]}, "python": sys.executable}
        path = self.folder / "two.yaml"
        path.write_text(json.dumps({**values, "ssh": self.settings(**ssh)}))
        return path

    def launch(self, *words: str) -> "subprocess.CompletedProcess[str]":
        ran = subprocess.run(
            [*LAUNCH, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=2 * PATIENCE_S,
            env=self.environ,
        )  # fmt: skip
        return ran


def ask(host: OpensshHost) -> Dict[str, Any]:
    """What the host knows of runs of the name r."""
    request = {"workdir": "/tmp/w", "name": "r", "host": host.name, "run": None}
    return rpc.ask(host, launcher_code(), "/tmp/w", "find", request, PATIENCE_S)


def authorize(host: Host, line: str) -> None:
    host.write("~/.ssh/authorized_keys", host.read("~/.ssh/authorized_keys") + line, 0o600)


def of_ssh() -> List[str]:
    """The command of each ``ssh`` that the launcher has started."""
    lines = [processes.command_line(each.pid) for each in processes.table()]
    return [line for line in lines if line.startswith("ssh") and "BatchMode=yes" in line.replace("\0", " ")]


@pytest.fixture
def operator(hosts: FakeHosts, tmp_path: Path) -> Iterator[Operator]:
    yield Operator(hosts, tmp_path)
    assert of_ssh() == [] and not list(Path("/tmp").glob("launch-ssh-*"))


def test_one_login_carries_all_programs_and_connections_of_a_verb(operator: Operator, hosts: FakeHosts) -> None:
    operator.write(EACH + ALL)
    before = logins(hosts[0])
    with operator.host("h1") as host:
        assert ask(host)["highest"] == 0 == ask(host)["highest"]
        connection = host.dial(22)
        assert connection.recv(100).startswith(b"SSH-2.0-")
        connection.close()
    assert logins(hosts[0]) == before + 1


def test_a_run_comes_up_is_seen_and_ends_with_a_certificate_as_the_only_login(
    operator: Operator, hosts: FakeHosts
) -> None:
    own = new_key(operator.folder / "own")
    (operator.folder / "own-cert.pub").write_text(signed(operator.folder, Path(f"{own}.pub").read_text(), "-n", "root"))
    authority = (operator.folder / "authority.pub").read_text()
    operator.write(EACH + "Host *\n  User root\n  IdentityFile {folder}/own\n  CertificateFile {folder}/own-cert.pub\n")
    for host in hosts:
        host.write("/etc/ssh/authority.pub", authority)
    trusts = "TrustedUserCAKeys /etc/ssh/authority.pub\nAuthorizedKeysFile none\n"
    file = str(operator.file())
    with sshd(hosts[0], trusts), sshd(hosts[1], trusts):
        up = operator.launch("up", "-d", file)
        assert up.returncode == 0, up.stderr
        status = json.loads(operator.launch("status", "--json", file).stdout)
        assert [task["state"] for task in status["tasks"]] == ["running", "running"]
        assert operator.launch("logs", file).stdout.split() == ["worker:[0-1]@h[1-2]", "×2", "begun"]
        down = operator.launch("down", file)
    assert down.returncode == 0 and down.stdout.count("no process, port, GPU memory") == 2, down.stdout + down.stderr


def test_a_second_factor_is_given_once_by_a_person_whose_connection_then_carries_the_programs(
    operator: Operator, hosts: FakeHosts
) -> None:
    h3 = hosts[2]
    h3.run(["sh", "-c", "echo root:hunter2 | chpasswd"])
    operator.write("Host *\n  ControlPath {folder}/%h\n" + EACH + ALL + f"  UserKnownHostsFile {operator.known}\n")
    twice = "AuthenticationMethods publickey,password\nPermitRootLogin yes\nPasswordAuthentication yes\n"
    with sshd(h3, twice):
        told = operator.problem("h3")
        assert "login refused (root@" in told.what and "Permission denied (password)" in told.what
        command = told.advice.split("`")[3]
        assert "-MNf" in command
        asked = operator.folder / "asks"
        asked.write_text("#!/bin/sh\necho hunter2\n")
        asked.chmod(0o700)
        environ = {**operator.environ, "SSH_ASKPASS": str(asked), "SSH_ASKPASS_REQUIRE": "force"}
        subprocess.run(command, shell=True, check=True, env=environ, stderr=subprocess.DEVNULL, timeout=PATIENCE_S)
        before = h3.read("/var/log/sshd.log").count("Accepted password")
        try:
            with operator.host("h3") as host:
                assert ask(host)["highest"] == 0
            assert h3.read("/var/log/sshd.log").count("Accepted password") == before == 1
            open_still = ["ssh", "-F", str(operator.folder / "config"), "-O", "check", "h3"]
            assert subprocess.run(open_still, stderr=subprocess.DEVNULL).returncode == 0
        finally:
            ends = ["ssh", "-F", str(operator.folder / "config"), "-O", "exit", "h3"]
            subprocess.run(ends, check=True, stderr=subprocess.DEVNULL, timeout=PATIENCE_S)


def test_a_security_key_in_an_agent_logs_in(operator: Operator, hosts: FakeHosts) -> None:
    operator.write(EACH + "Host *\n  User root\n")
    with SecurityKeyAgent(operator.folder / "agent") as agent:
        authorize(hosts[1], agent.line)
        operator.environ["SSH_AUTH_SOCK"] = str(agent.path)
        with operator.host("h2") as host:
            assert ask(host)["highest"] == 0 == ask(host)["highest"]
        assert agent.signatures == 1


def test_a_host_is_known_by_the_certificate_of_its_authority(operator: Operator, hosts: FakeHosts) -> None:
    h2 = hosts[1]
    host_key = h2.read("/etc/ssh/ssh_host_ed25519_key.pub")
    h2.write("/etc/ssh/host-cert.pub", signed(operator.folder, host_key, "-h", "-n", h2.address))
    operator.known.write_text(f"@cert-authority 10.* {(operator.folder / 'authority.pub').read_text()}")
    operator.write(EACH + ALL)
    with sshd(h2, "HostCertificate /etc/ssh/host-cert.pub\n"), operator.host("h2") as host:
        assert ask(host)["highest"] == 0
    assert operator.problem("h2").what == "ssh knows no host key of this host, or of a gateway before it"


def test_where_sshd_permits_one_session_each_program_has_its_own_login(operator: Operator, hosts: FakeHosts) -> None:
    operator.write(EACH + ALL)
    with sshd(hosts[0], "MaxSessions 1\n"):
        before = logins(hosts[0])
        with operator.host("h1") as host:
            assert ask(host)["highest"] == 0
        assert logins(hosts[0]) == before + 2


def test_gateways_of_the_file_and_of_the_configuration_are_passed(operator: Operator, hosts: FakeHosts) -> None:
    operator.write(
        f"Host h1\n  HostName {{h1}}\n  UserKnownHostsFile {operator.known}\nHost h3\n  ProxyJump h1\n" + ALL
    )
    before = logins(hosts[0])
    for name, gateway in (("h3", None), ("h2", "h1")):
        with operator.host(name, gateway=gateway) as host:
            assert ask(host)["highest"] == 0
    assert logins(hosts[0]) == before + 2
    assert str(operator.problem("h9", gateway="h1")).startswith("h9: the gateway cannot reach it (connect failed: ")


def test_the_text_of_a_program_is_not_taken_for_that_of_ssh(operator: Operator) -> None:
    operator.write(EACH + ALL)
    with operator.host("h1", python="python9") as host, pytest.raises(HostProblem, match="no python9 there"):
        ask(host)
    fails = ["sh", "-c", "echo 'Connection reset by peer: line 3: x' >&2; exit 3"]
    with operator.host("h1") as host:
        channel = host.open(fails)
        assert channel.receive(PATIENCE_S) == b"" and channel.complaint() == "Connection reset by peer: line 3: x"
        channel.close()


def test_a_host_that_is_closed_interrupts_a_program_that_does_not_answer(operator: Operator) -> None:
    operator.write(EACH + ALL)
    with operator.host("h1") as host:
        channel = host.open(["sleep", "1000"])
        waited: List[bytes] = []
        waiting = Thread(target=lambda: waited.append(channel.receive(PATIENCE_S)))
        waiting.start()
        host.close()
        waiting.join(PATIENCE_S)
        assert waited == [b""]
        channel.close()


def test_a_mute_sshd_is_waited_for_in_bounds_and_not_at_all_once_the_host_is_closed(operator: Operator) -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen(8)
        operator.write(f"Host m\n  HostName 127.0.0.1\n  Port {mute.getsockname()[1]}\n" + ALL)
        assert operator.problem("m", connect_timeout_s=1).what.startswith("no answer from 127.0.0.1 port")
        with operator.host("m", connect_timeout_s=100) as host:
            found: List[str] = []

            def connect() -> None:
                with pytest.raises(HostProblem):
                    host.connect()
                found.append("ended")

            connecting = Thread(target=connect)
            connecting.start()
            eventually("the login", of_ssh)
            host.close()
            connecting.join(PATIENCE_S)
            assert found == ["ended"]


def test_a_program_that_reads_nothing_is_sent_to_in_bounds(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openssh_host, "SEND_S", 1.0)
    operator.write(EACH + ALL)
    with operator.host("h1") as host:
        channel = host.open(["sleep", "1000"])
        with pytest.raises(OSError, match="ssh has read nothing for 1 s"):
            channel.send(bytes(1 << 25))
        channel.close()


def test_a_refused_login_is_tried_once(operator: Operator, hosts: FakeHosts) -> None:
    operator.write(EACH + ALL)
    told = operator.problem("h2", user="mallory")
    assert told.what == f"login refused (mallory@{hosts[1].address}: Permission denied (publickey))"
    assert hosts[1].read("/var/log/sshd.log").count("Invalid user mallory") == 1


def test_a_login_that_a_busy_sshd_drops_is_tried_again(operator: Operator, hosts: FakeHosts) -> None:
    operator.write(EACH + ALL)
    with sshd(hosts[0], "MaxStartups 1:100:1\nLoginGraceTime 3\n"):
        waiting = subprocess.Popen(
            [sys.executable, "-c", f"import socket,time;s=socket.create_connection(('{hosts[0].address}',22));"
             "s.recv(9);print(flush=True);time.sleep(60)"], stdout=subprocess.PIPE)  # fmt: skip
        try:
            assert waiting.stdout is not None and waiting.stdout.readline()
            with operator.host("h1") as host:
                assert ask(host)["highest"] == 0
        finally:
            waiting.kill()
            waiting.communicate()
    assert "drop connection" in hosts[0].read("/var/log/sshd.log")


def test_an_unknown_key_is_refused_whatever_runs_and_the_command_to_accept_it_is_named(
    operator: Operator, hosts: FakeHosts
) -> None:
    operator.write(EACH + ALL)
    operator.known.write_text("")
    told = operator.problem("h1")
    assert told.what == "ssh knows no host key of this host, or of a gateway before it"
    assert operator.known.read_text() == ""
    command = told.advice.split("`")[1]
    agreed = command.replace("StrictHostKeyChecking=ask", "StrictHostKeyChecking=accept-new")  # a person's yes
    subprocess.run(agreed, shell=True, check=True, env=operator.environ, stderr=subprocess.DEVNULL, timeout=PATIENCE_S)
    with operator.host("h1") as host:
        assert ask(host)["highest"] == 0


def test_a_changed_key_is_refused_with_the_entry_to_replace(operator: Operator, hosts: FakeHosts) -> None:
    operator.write(EACH + ALL)
    other = next(line for line in operator.known.read_text().splitlines() if line.startswith("h1,"))
    operator.known.write_text(f"{hosts[1].address} {other.split(' ', 1)[1]}\n")
    told = operator.problem("h2")
    assert told.what.startswith(f"the host key of {hosts[1].address} differs from the one in {operator.known}: ")
    assert told.advice.startswith(f"remove the old key with `ssh-keygen -R {hosts[1].address} -f {operator.known}`")


def test_the_end_of_a_killed_launcher_ends_its_logins(operator: Operator, hosts: FakeHosts) -> None:
    operator.write(EACH + ALL)
    file = str(operator.file())
    launcher = subprocess.Popen(
        [*LAUNCH, "up", file], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=operator.environ,
    )  # fmt: skip
    try:
        eventually("the logins", lambda: len(of_ssh()) >= 2)
    finally:
        os.kill(launcher.pid, signal.SIGKILL)
        launcher.wait(PATIENCE_S)
    eventually("the end of every ssh", lambda: not of_ssh())
    for folder in Path("/tmp").glob("launch-ssh-*"):
        folder.rmdir()  # no socket is left in it
    assert operator.launch("down", file).returncode == 0
