"""What all connections share: whose user and port a gateway has."""

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
from launch.remote import access
from launch.remote.access import Access
from tests.support.ssh.keys import new_key
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.not_fast  # OpenSSH is asked for the options of hosts


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


@pytest.mark.parametrize(("code", "logins"), [(4, ["gw", "gw", "gw"]), (2, ["gw"])])
def test_a_host_behind_a_full_gateway_gets_a_further_login_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, logins: List[str]
) -> None:
    """Dropbear bounds the channels of a connection; a host that does not answer is no reason for another login."""
    (tmp_path / "config").write_text("")
    behind = Access(Ssh(config=str(tmp_path / "config"), gateway="gw"), ask=lambda path: "")
    opened: List[str] = []

    def log_in(connection: Any) -> None:
        if connection.host == "gw":
            opened.append("gw")
        elif len(opened) < 3:
            raise paramiko.ChannelException(code, "no")
        connection.transport = SimpleNamespace(set_keepalive=lambda seconds: None, sock=None, active=True)

    monkeypatch.setattr(access, "_log_in", log_in)
    behind.prepare("gpu01")
    if code == 4:
        assert behind.open("gpu01").gateway is not None
    else:
        with pytest.raises(HostProblem, match="the gateway cannot reach gpu01"):
            behind.open("gpu01")
    assert opened == logins
    behind.close()


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
