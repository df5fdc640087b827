"""The order of a login: a ticket where one is asked for, then the keys; and what a refusal names."""

from typing import Any, List, Optional

import paramiko
import pytest

from launch.remote import kerberos, login
from launch.remote.connection_failures import NO_LOGIN, NoTicket, Unanswered
from launch.remote.kerberos import Kerberos
from launch.remote.login import Login


class Sshd:
    """A transport whose other end accepts what is named."""

    def __init__(self, *accepts: str, further: Optional[List[str]] = None):
        self.accepts, self.further = accepts, further or []
        self.asked: List[str] = []

    def is_active(self) -> bool:
        return True

    def auth_publickey(self, user: str, key: str) -> List[str]:
        return self.try_with(key)

    def try_with(self, what: str) -> List[str]:
        self.asked.append(what)
        if what not in self.accepts:
            raise paramiko.AuthenticationException("Authentication failed.")
        return self.further if what == "ticket" else []


@pytest.fixture
def tickets(monkeypatch: pytest.MonkeyPatch) -> Any:
    def there(obstacle: Optional[str] = None) -> None:
        monkeypatch.setattr(kerberos, "obstacle", lambda *_: obstacle)
        monkeypatch.setattr(kerberos, "context", lambda wanted: wanted)
        monkeypatch.setattr(login, "log_in_with_ticket", lambda transport, *_: transport.try_with("ticket"))

    return there


def log_in(sshd: Sshd, keys: Any = ("a", "b"), **wanted: bool) -> List[str]:
    Login("me", keys, Kerberos("h1", **wanted), 5.0).authenticate(sshd)
    return sshd.asked


def test_keys_alone_are_offered_unless_the_configuration_asks_for_a_ticket(tickets: Any) -> None:
    tickets()
    assert log_in(Sshd("ticket", "b")) == ["a", "b"]
    assert log_in(Sshd("ticket", "b"), logs_in=True) == ["ticket"]
    assert log_in(Sshd("ticket"), keys=(), logs_in=True) == ["ticket"]


def test_a_ticket_that_is_refused_is_followed_by_the_keys(tickets: Any) -> None:
    tickets()
    assert log_in(Sshd("b"), logs_in=True) == ["ticket", "a", "b"]


def test_a_host_that_wants_a_key_after_the_ticket_gets_it(tickets: Any) -> None:
    tickets()
    assert log_in(Sshd("ticket", "a", further=["publickey"]), logs_in=True) == ["ticket", "a"]


def test_where_no_ticket_can_be_had_none_is_offered_and_a_refusal_says_why(tickets: Any) -> None:
    tickets("no cache; see `kinit`")
    assert log_in(Sshd("b"), logs_in=True) == ["a", "b"]
    with pytest.raises(NoTicket, match=r"Authentication failed\.") as caught:
        log_in(Sshd(), logs_in=True)
    assert caught.value.ticket == "no cache; see `kinit`"


def test_the_refusal_of_a_ticket_is_told_beside_that_of_the_keys(tickets: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tickets()
    with pytest.raises(NoTicket) as caught:
        log_in(Sshd(), logs_in=True)
    assert caught.value.ticket.startswith("it refuses the ticket of this user (Authentication failed.)")

    def unknown(*_: Any) -> List[str]:
        raise paramiko.BadAuthenticationType("Bad authentication type", ["publickey"])

    monkeypatch.setattr(login, "log_in_with_ticket", unknown)
    with pytest.raises(NoTicket) as caught:
        log_in(Sshd(), logs_in=True)
    assert caught.value.ticket == "its sshd takes no tickets; set GSSAPIAuthentication yes in its sshd_config"


@pytest.mark.parametrize("logs_in", [False, True])
def test_a_login_without_an_answer_is_waited_for_once_and_not_for_every_key(tickets: Any, logs_in: bool) -> None:
    class Mute(Sshd):
        """An sshd that waits for a user database."""

        def try_with(self, what: str) -> List[str]:
            self.asked.append(what)
            raise paramiko.AuthenticationException("Authentication timeout.")

    tickets()
    sshd = Mute()
    with pytest.raises(Unanswered) as caught:
        log_in(sshd, logs_in=logs_in)
    assert caught.value.stage == NO_LOGIN and sshd.asked == ["ticket" if logs_in else "a"]
