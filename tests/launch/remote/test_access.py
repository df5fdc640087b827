"""What all connections share: what the SSH configuration asks of Kerberos reaches keys, logins and problems."""

import shutil
import socket
import threading
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Iterator, List

import paramiko
import pytest

from cluster.spec.model import Ssh
from launch.errors import HostProblem
from launch.remote import access, kerberos
from launch.remote.access import NO_EXCHANGE, Access
from launch.remote.connection_failures import NoTicket, UnknownHostKey
from launch.remote.kerberos import Kerberos
from tests.support.ssh.keys import new_key
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.not_fast  # OpenSSH is asked for the options of hosts
CONFIG = "Host gpu01\n  HostName 127.0.0.1\n  GSSAPIAuthentication yes\n  GSSAPIKeyExchange yes\n"


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Access]:
    """A home with one locked key, without ssh-agent, in which nobody is asked."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    (tmp_path / ".ssh").mkdir()
    new_key(tmp_path / ".ssh" / "id_ed25519", "secret")
    (tmp_path / "config").write_text(CONFIG)
    found = Access(Ssh(config=str(tmp_path / "config"), connect_timeout_s=0.5), ask=lambda path: "")
    yield found
    found.close()
    shutil.rmtree(str(tmp_path))


def test_a_locked_key_is_no_obstacle_where_a_ticket_logs_in(shared: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kerberos, "has_ticket", lambda: True)
    shared.prepare("gpu01")
    with pytest.raises(HostProblem, match="locked by a passphrase"):
        shared.prepare("gpu02")


def test_without_a_ticket_the_key_is_asked_for_as_ever(shared: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kerberos, "has_ticket", lambda: False)
    with pytest.raises(HostProblem, match="locked by a passphrase"):
        shared.prepare("gpu01")


def test_a_login_knows_what_the_configuration_asks_for_and_the_name_that_is_dialled(
    shared: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    def login(*values: Any) -> Any:
        made.append(values)

    monkeypatch.setattr(kerberos, "has_ticket", lambda: True)
    monkeypatch.setattr(access, "Login", login)
    monkeypatch.setattr(access, "_log_in", lambda connection: (_ for _ in ()).throw(paramiko.ChannelException(1, "no")))
    shared.prepare("gpu01")
    with pytest.raises(HostProblem):
        shared.open("gpu01")
    ((_, _, wanted, bound_s),) = made
    assert wanted == Kerberos("127.0.0.1", logs_in=True, exchanges_keys=True) and bound_s == 0.5


@pytest.mark.parametrize("own", [True, False])
def test_a_missing_ticket_is_a_reason_only_where_the_operator_s_own_file_asks_for_tickets(
    shared: Access, own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("launch.remote.ssh_options.SshOptions.are_own", lambda *_: own)
    connection: Any = SimpleNamespace(ssh_config={}, host="127.0.0.1", user="me", port=22)
    problem = shared.problem("gpu01", connection, NoTicket("every key", "no package"))
    assert "login refused (every key)" in str(problem) and ("GSSAPIAuthentication" in problem.advice) is own


def test_a_host_that_is_also_a_gateway_has_ssh_user_as_a_host_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("Host gw\n  User of_gw\n  Port 2200\n")
    opened: List[Any] = []
    monkeypatch.setattr(access, "_log_in", opened.append)
    both = Access(Ssh(config=str(tmp_path / "config"), user="mine", port=22, gateway="gw"), ask=lambda path: "")
    for name in ("gw", "gpu01"):
        both.look_up(name)
    for name in ("gw", "gpu01"):
        both.prepare(name)
        with pytest.raises(AttributeError, match="set_keepalive"):  # nothing has logged in
            both.open(name)
    assert [(each.host, each.user, each.port) for each in opened] == [("gw", "mine", 22), ("gw", "of_gw", 2200)]
    both.close()


@pytest.mark.parametrize(("options", "named"), [({"gssapikeyexchange": "yes"}, True), ({}, False)])
def test_a_host_key_that_a_ticket_would_replace_is_asked_for_with_the_reason(
    shared: Access, options: Any, named: bool
) -> None:
    connection: Any = SimpleNamespace(ssh_config=options, host="127.0.0.1", user="me", port=22)
    problem = shared.problem("gpu01", connection, UnknownHostKey("no key is known"))
    assert problem.advice.endswith(NO_EXCHANGE) is named
    assert NO_EXCHANGE not in shared.problem("gpu01", connection, EOFError()).advice


@pytest.fixture
def port() -> Iterator[Any]:
    """A port whose owner accepts connections, sends what it is told, and then nothing."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(8)
    listener.settimeout(PATIENCE_S)
    met: List[socket.socket] = []
    says: List[bytes] = []

    def meet() -> None:
        with suppress(OSError):
            while True:
                met.append(listener.accept()[0])
                met[-1].sendall(says[0])

    thread = threading.Thread(target=meet, daemon=True)
    yield SimpleNamespace(number=listener.getsockname()[1], says=says, met=met, begin=thread.start)
    listener.close()
    for each in met:
        each.close()


@pytest.mark.parametrize(
    ("says", "what"),
    [
        (b"", "accepts the connection, and sends nothing within 0.5 s"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "begins SSH, and the key exchange does not end within 0.5 s"),  # an MTU too large
    ],
)
def test_an_sshd_that_falls_silent_is_tried_once_and_named_by_where(
    tmp_path: Path, port: Any, says: bytes, what: str
) -> None:
    port.says.append(says)
    port.begin()
    config = tmp_path / "config"
    config.write_text(f"Host h1\n  HostName 127.0.0.1\n  Port {port.number}\n  IdentitiesOnly yes\n")
    key = new_key(tmp_path / "key")
    opening = Access(Ssh(config=str(config), key=str(key), known_hosts=str(tmp_path / "none"), connect_timeout_s=0.5))
    opening.prepare("h1")
    with pytest.raises(HostProblem) as caught:
        opening.open("h1")
    opening.close()
    assert caught.value.what == f"127.0.0.1 port {port.number} {what}"
    assert "MaxStartups" not in str(caught.value) and len(port.met) == 1
