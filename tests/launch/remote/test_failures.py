"""Why a host could not be reached, in words that say what to do, and which failures may pass by themselves."""

import inspect
import shlex
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Dict, Optional

import paramiko
import pytest

from cluster.spec.model import Ssh
from launch.agent.linux.sockets import free_ports
from launch.errors import HostProblem, ProblemKind
from launch.remote.access import Access
from launch.remote.connection_failures import (
    NO_ANSWER,
    NO_BANNER,
    NO_KEYS,
    NO_LOGIN,
    OTHER_HOST_KEY,
    NoTicket,
    Unanswered,
    UnknownHostKey,
    explain,
    is_dropped,
    unanswered,
)
from launch.remote.openssh import ByHand
from launch.remote.ssh_host import SshHost

SSH = Ssh(known_hosts="/k", connect_timeout_s=3)


def way(**values: Any) -> ByHand:
    return ByHand("h1", "alice", 22, "", "h1", SSH)._replace(**values)


def key() -> paramiko.PKey:
    return paramiko.RSAKey.generate(1024)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (UnknownHostKey("no key is known for h1"),
         "its host key is not in /k; verify the key, then accept it with `ssh -o StrictHostKeyChecking=ask "
         "-o GlobalKnownHostsFile=/dev/null -o ControlPath=none -o UserKnownHostsFile=/k -l alice -p 22 h1 true`"),
        (paramiko.AuthenticationException("Authentication failed."),
         "login refused (Authentication failed.); try `ssh -o UserKnownHostsFile=/k -l alice -p 22 h1`, "
         "and check the keys ssh.user and ssh.key"),
        (NoTicket("Authentication failed.", "no cache; see `kinit`"),
         "login refused (Authentication failed.); try `ssh -o UserKnownHostsFile=/k -l alice -p 22 h1`, "
         "and check the keys ssh.user and ssh.key; GSSAPIAuthentication is set for it, and fails: no cache; "
         "see `kinit`"),
        (socket.gaierror(-2, "Name or service not known"),
         "this machine cannot resolve the name h1 (Name or service not known); see `getent hosts h1`"),
        (socket.timeout("timed out"), "no answer from h1 port 22 within 3 s; check that the host is up"),
        (paramiko.SSHException("Timeout opening channel."),
         "no answer from h1 port 22 within 3 s; check that the host is up"),
        (ConnectionRefusedError(111, "Connection refused"),
         "no SSH at h1 port 22 (Connection refused); check that the host is up and runs sshd"),
        (OSError(113, "No route to host"),
         "no SSH at h1 port 22 (No route to host); check that the host is up and runs sshd"),
        (paramiko.SSHException("Error reading SSH protocol banner"),
         "h1 port 22 drops every login (Error reading SSH protocol banner); see sshd's log there, "
         "and MaxStartups in its sshd_config"),
        (Unanswered(NO_BANNER),
         "h1 port 22 accepts the connection, and sends nothing within 3 s; its sshd hangs: see that host's console "
         "and load; or another program has this port"),
        (Unanswered(NO_KEYS),
         "h1 port 22 begins SSH, and the key exchange does not end within 3 s; long packets are lost on the way (MTU), "
         "or its sshd hangs; see `ping -M do -s 1472 h1`, and `ping h1`"),
        (Unanswered(NO_LOGIN),
         "h1 port 22 does not answer the login within 3 s; its sshd waits, mostly for a directory (LDAP) or a file "
         "server with the home folders; see sshd's log there"),
        (EOFError(), "h1 port 22 drops every login (EOFError); see sshd's log there, "
         "and MaxStartups in its sshd_config"),
        (paramiko.ChannelException(2, "Connect failed"),
         "the gateway cannot reach h1 port 22 (Connect failed); check that the host is up and runs sshd"),
        (ValueError("q must be exactly 160 bits"), "SSH to h1 port 22 failed: ValueError: q must be exactly 160 bits"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)  # fmt: skip
def test_every_reason_is_told_with_what_to_do_next(error: Exception, text: str) -> None:
    assert explain("h1", error, ("h1", 22), way()).reason == text


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (UnknownHostKey("no key is known for h1"), ProblemKind.HOST_KEY),
        (paramiko.AuthenticationException("Authentication failed."), ProblemKind.AUTHENTICATION),
        (socket.gaierror(-2, "Name or service not known"), ProblemKind.UNKNOWN_NAME),
        (socket.timeout("timed out"), ProblemKind.UNREACHABLE),
        (ConnectionRefusedError(111, "Connection refused"), ProblemKind.UNREACHABLE),
        (EOFError(), ProblemKind.SSHD),
        (Unanswered(NO_BANNER), ProblemKind.SSHD),
        (paramiko.ChannelException(2, "Connect failed"), ProblemKind.UNREACHABLE),
        (ValueError("q must be exactly 160 bits"), ProblemKind.UNREACHABLE),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_every_reason_has_a_kind(error: Exception, kind: ProblemKind) -> None:
    assert explain("h1", error, ("h1", 22), way()).kind is kind


@pytest.mark.parametrize(("port", "entry"), [(22, "h1"), (2200, "[h1]:2200")])
def test_a_changed_host_key_is_told_with_the_entry_to_replace(port: int, entry: str) -> None:
    error = paramiko.BadHostKeyException("h1", key(), key())
    problem = explain("h1", error, ("h1", port), way(port=port, entry=entry))
    text = problem.reason
    assert problem.kind is ProblemKind.HOST_KEY and text.startswith(
        "its host key differs from the one in /k: a reinstalled machine, or an intercepted connection;"
    )
    assert f"`ssh-keygen -R {shlex.quote(entry)} -f /k`" in text and f"-l alice -p {port} h1 true`" in text


@pytest.mark.parametrize("words", [NO_ANSWER, OTHER_HOST_KEY, NO_BANNER, NO_KEYS, NO_LOGIN])
def test_the_words_of_paramiko_that_decide_are_its_own(words: str) -> None:
    assert words in inspect.getsource(paramiko.transport) + inspect.getsource(paramiko.auth_handler)


def without_banner(reason: Exception) -> paramiko.SSHException:
    try:
        try:
            raise reason
        except Exception:
            raise paramiko.SSHException(NO_BANNER)  # noqa: B904 (as Paramiko does)
    except paramiko.SSHException as error:
        return error


@pytest.mark.parametrize(
    ("error", "stage"),
    [
        (without_banner(socket.timeout()), NO_BANNER),
        (without_banner(EOFError()), None),  # dropped
        (paramiko.SSHException(NO_KEYS), NO_KEYS),
        (paramiko.AuthenticationException("Authentication timeout."), NO_LOGIN),
        (paramiko.AuthenticationException("Authentication failed."), None),
        (EOFError(), None),
    ],
)
def test_silence_is_told_from_a_dropped_login_and_from_a_refusal(error: Exception, stage: Optional[str]) -> None:
    found = unanswered(error)
    assert (found and found.stage) == stage


def test_a_key_exchange_before_any_banner_waits_for_the_banner() -> None:
    found = unanswered(paramiko.SSHException(NO_KEYS), has_banner=False)
    assert found is not None and found.stage == NO_BANNER


def test_a_host_that_has_no_key_of_the_known_kind_has_another_key_than_the_known_one() -> None:
    error = paramiko.ssh_exception.IncompatiblePeer("Incompatible ssh peer (no acceptable host key)")
    assert explain("h1", error, ("h1", 22), way()).what.startswith("its host key differs from the one in /k: ")


@pytest.mark.parametrize(
    "error",
    [
        EOFError(),
        ConnectionResetError(104, "Connection reset by peer"),
        paramiko.SSHException("Error reading SSH protocol banner"),
        paramiko.SSHException("Channel closed."),
    ],
    ids=str,
)
def test_a_login_that_was_let_go_may_be_tried_again(error: Exception) -> None:
    assert is_dropped(error)


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
        Unanswered(NO_BANNER),
        ConnectionRefusedError(111, "Connection refused"),
        OSError(113, "No route to host"),
        ValueError("a mistake"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_was_refused_or_is_not_there_is_not_tried_again(error: Exception) -> None:
    assert not is_dropped(error)


def test_no_valid_connection_is_no_ssh_there() -> None:
    error = paramiko.ssh_exception.NoValidConnectionsError({("127.0.0.1", 22): ConnectionRefusedError(111, "refused")})
    assert explain("h1", error, ("h1", 22), way()).what.startswith(
        "no SSH at h1 port 22 (Unable to connect to port 22 on 127.0.0.1"
    )


def refusal(host: str, settings: Ssh) -> str:
    with ExitStack() as stack, pytest.raises(HostProblem) as caught:
        access = Access(settings)
        stack.callback(access.close)
        access.prepare(host)
        SshHost(host, "python3", access).connect()
    return str(caught.value)


@pytest.mark.not_fast
def test_where_no_sshd_listens_the_host_and_port_are_named(tmp_path: Path) -> None:
    port = free_ports(1)[0]
    text = refusal("localhost", Ssh(port=port, config=None, known_hosts=str(tmp_path / "k"), connect_timeout_s=3))
    assert text.startswith(f"localhost: no SSH at localhost port {port} (")


@pytest.mark.not_fast
def test_a_name_that_nobody_knows_is_told(tmp_path: Path) -> None:
    text = refusal("no-such-host.invalid", Ssh(config=None, connect_timeout_s=3))
    assert text.startswith("no-such-host.invalid: this machine cannot resolve the name no-such-host.invalid (")


@pytest.mark.not_fast
def test_a_port_that_answers_nothing_is_not_waited_for(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(1)
        port = silent.getsockname()[1]
        text = refusal("localhost", Ssh(port=port, config=None, connect_timeout_s=0.2))
    assert f"localhost port {port}" in text


# -- commands to type


@pytest.mark.parametrize(
    ("settings", "values", "words"),
    [
        (Ssh(), {}, "-l alice -p 22 h1"),
        (Ssh(config=None), {}, "-F none -l alice -p 22 h1"),
        (Ssh(config="/etc/my config"), {}, "-F '/etc/my config' -l alice -p 22 h1"),
        (Ssh(key="/k 1"), {"jump": "a,b", "port": 2200}, "-J a,b -i '/k 1' -l alice -p 2200 h1"),
        (Ssh(), {"user": "a b;c", "name": "$(x)"}, "-l 'a b;c' -p 22 '$(x)'"),
    ],
)
def test_a_login_by_hand_leads_where_the_launchers_led(settings: Ssh, values: Dict[str, Any], words: str) -> None:
    assert way(settings=settings, **values).login() == f"ssh {words}"


def test_a_path_that_begins_with_a_tilde_works_in_quotes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/al ice")
    by_hand = way(settings=Ssh())
    assert shlex.split(by_hand.forget())[-1] == "/home/al ice/.ssh/known_hosts"
    assert 'UserKnownHostsFile="/home/al ice/.ssh/known_hosts"' in shlex.split(by_hand.accept())
