"""Why a host could not be reached, in words that say what to do, and which failures may pass by themselves."""

import socket
from contextlib import ExitStack
from pathlib import Path

import paramiko
import pytest

from cluster.spec.model import Ssh
from launch.agent.ports import free_ports
from launch.errors import HostProblem
from launch.remote.access import Access
from launch.remote.host import SshHost
from launch.remote.reasons import UnknownHostKey, dropped, explain

SSH = Ssh(known_hosts="/k", connect_timeout_s=3)


def key() -> paramiko.PKey:
    return paramiko.RSAKey.generate(1024)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (UnknownHostKey("no key is known for h1"),
         "its host key is not in /k; show it with `ssh-keyscan -p 22 h1 | ssh-keygen -lf -`, "
         "and if it is right, accept it with `ssh-keyscan -p 22 h1 >> /k`"),
        (paramiko.AuthenticationException("Authentication failed."),
         "login refused (Authentication failed.); try `ssh -p 22 h1`, and see the keys ssh.user and ssh.key"),
        (socket.gaierror(-2, "Name or service not known"),
         "the name h1 is not known here (Name or service not known); see `getent hosts h1`"),
        (socket.timeout("timed out"), "no answer from h1 port 22 within 3 s; is the host up?"),
        (paramiko.SSHException("Timeout opening channel."), "no answer from h1 port 22 within 3 s; is the host up?"),
        (ConnectionRefusedError(111, "Connection refused"),
         "no SSH at h1 port 22 (Connection refused); is the host up, and sshd on it?"),
        (OSError(113, "No route to host"),
         "no SSH at h1 port 22 (No route to host); is the host up, and sshd on it?"),
        (paramiko.SSHException("Error reading SSH protocol banner"),
         "h1 port 22 drops every login (Error reading SSH protocol banner); see sshd's log there, "
         "and MaxStartups in its sshd_config"),
        (EOFError(), "h1 port 22 drops every login (EOFError); see sshd's log there, "
         "and MaxStartups in its sshd_config"),
        (paramiko.ChannelException(2, "Connect failed"),
         "the gateway cannot reach h1 port 22 (Connect failed); is the host up, and sshd on it?"),
        (ValueError("q must be exactly 160 bits"), "SSH to h1 port 22 failed: ValueError: q must be exactly 160 bits"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)  # fmt: skip
def test_every_reason_is_told_with_what_to_do_next(error: Exception, text: str) -> None:
    assert explain(error, ("h1", 22), SSH) == text


@pytest.mark.parametrize(("port", "entry"), [(22, "h1"), (2200, "[h1]:2200")])
def test_a_changed_host_key_is_told_with_the_entry_to_replace(port: int, entry: str) -> None:
    text = explain(paramiko.BadHostKeyException("h1", key(), key()), ("h1", port), SSH)
    assert text.startswith("its host key is not the one in /k: the machine was set up anew, or somebody is in between;")
    assert f"`ssh-keygen -R '{entry}' -f /k && ssh-keyscan -p {port} h1 >> /k`" in text


def test_a_host_that_has_no_key_of_the_known_kind_has_another_key_than_the_known_one() -> None:
    error = paramiko.ssh_exception.IncompatiblePeer("Incompatible ssh peer (no acceptable host key)")
    assert explain(error, ("h1", 22), SSH).startswith("its host key is not the one in /k: ")


@pytest.mark.parametrize(
    "error",
    [
        EOFError(),
        ConnectionResetError(104, "Connection reset by peer"),
        paramiko.SSHException("Error reading SSH protocol banner"),
        paramiko.SSHException("No existing session"),
    ],
    ids=str,
)
def test_a_login_that_was_let_go_may_be_tried_again(error: Exception) -> None:
    assert dropped(error)


@pytest.mark.parametrize(
    "error",
    [
        UnknownHostKey("no key is known for h1"),
        paramiko.BadHostKeyException("h1", key(), key()),
        paramiko.AuthenticationException("Authentication failed."),
        paramiko.ssh_exception.BadAuthenticationType("no", ["password"]),
        paramiko.ssh_exception.IncompatiblePeer("no acceptable kex algorithm"),
        paramiko.ChannelException(2, "Connect failed"),
        paramiko.SSHException("Timeout opening channel."),
        socket.gaierror(-2, "Name or service not known"),
        socket.timeout("timed out"),
        ConnectionRefusedError(111, "Connection refused"),
        OSError(113, "No route to host"),
        ValueError("a mistake"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_was_refused_or_is_not_there_is_not_tried_again(error: Exception) -> None:
    assert not dropped(error)


def test_no_valid_connection_is_no_ssh_there() -> None:
    error = paramiko.ssh_exception.NoValidConnectionsError({("127.0.0.1", 22): ConnectionRefusedError(111, "refused")})
    assert explain(error, ("h1", 22), SSH).startswith("no SSH at h1 port 22 (Unable to connect to port 22 on 127.0.0.1")


def refusal(host: str, settings: Ssh) -> str:
    with ExitStack() as stack, pytest.raises(HostProblem) as caught:
        access = Access(settings)
        stack.callback(access.close)
        access.prepare(host)
        SshHost(host, "python3", access).connect()
    return str(caught.value)


def test_where_no_sshd_listens_the_host_and_port_are_named(tmp_path: Path) -> None:
    port = free_ports(1)[0]
    text = refusal("localhost", Ssh(port=port, config=None, known_hosts=str(tmp_path / "k"), connect_timeout_s=3))
    assert text.startswith(f"localhost: no SSH at localhost port {port} (")


def test_a_name_that_nobody_knows_is_told(tmp_path: Path) -> None:
    text = refusal("no-such-host.invalid", Ssh(config=None, connect_timeout_s=3))
    assert text.startswith("no-such-host.invalid: the name no-such-host.invalid is not known here (")


def test_a_port_that_answers_nothing_is_not_waited_for(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(1)
        port = silent.getsockname()[1]
        text = refusal("localhost", Ssh(port=port, config=None, connect_timeout_s=0.2))
    assert f"localhost port {port}" in text
