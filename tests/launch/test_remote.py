"""SSH as the launcher speaks it: why a host could not be reached, and how a program is named to a login shell."""

import socket
import subprocess
from pathlib import Path
from typing import List

import paramiko
import pytest

from cluster.spec.model import Ssh
from launch.agent.ports import free_ports
from launch.errors import HostProblem
from launch.remote import SshHost, command_line, explain

SSH = Ssh(known_hosts="/k", connect_timeout_s=3)


def key() -> paramiko.PKey:
    return paramiko.RSAKey.generate(1024)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (paramiko.SSHException("Server 'h1' not found in known_hosts"),
         "its host key is not in /k; show it with `ssh-keyscan -p 22 h1 | ssh-keygen -lf -`, "
         "and if it is right, accept it with `ssh-keyscan -p 22 h1 >> /k`"),
        (paramiko.PasswordRequiredException("Private key file is encrypted"),
         "the key is locked by a passphrase; unlock it with `ssh-add`"),
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
         "SSH to h1 port 22 failed: SSHException: Error reading SSH protocol banner"),
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


def test_no_valid_connection_is_no_ssh_there() -> None:
    error = paramiko.ssh_exception.NoValidConnectionsError({("127.0.0.1", 22): ConnectionRefusedError(111, "refused")})
    assert explain(error, ("h1", 22), SSH).startswith("no SSH at h1 port 22 (Unable to connect to port 22 on 127.0.0.1")


@pytest.mark.parametrize(
    "argv",
    [["echo", "a b", "$HOME", "'", '"', "`x`", "\\", "a;b", "*", "", "ä\n"], ["echo", "-c", "import base64;exec('1')"]],
)
def test_words_reach_a_program_through_a_shell_as_they_are(argv: List[str]) -> None:
    script = 'for word in "$@"; do printf "%s\\0" "$word"; done'
    line = command_line(["sh", "-c", script, *argv])
    ran = subprocess.run(["sh", "-c", line], stdout=subprocess.PIPE, check=True)
    assert ran.stdout.decode().split("\0")[:-1] == argv[1:]


def test_a_tilde_at_the_front_means_home_over_there(tmp_path: Path) -> None:
    program = tmp_path / "my env" / "python"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho $1\n")
    program.chmod(0o755)
    line = command_line(["~/my env/python", "~"])
    ran = subprocess.run(["sh", "-c", line], stdout=subprocess.PIPE, check=True, env={"HOME": str(tmp_path)})
    assert ran.stdout == b"~\n"


def refusal(host: str, settings: Ssh) -> str:
    with pytest.raises(HostProblem) as caught:
        SshHost(host, "python3", settings).connect()
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
