"""What all connections share: whose user and port a gateway has."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, List

import paramiko
import pytest

from cluster.spec.model import Ssh
from launch.errors import HostProblem
from launch.remote import access
from launch.remote.access import Access

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
