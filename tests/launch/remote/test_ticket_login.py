"""The messages of a login with a ticket, in their order; a refusal leaves the connection to the keys."""

import threading
from types import SimpleNamespace
from typing import Any, List, Optional

import paramiko
import pytest
from paramiko import common

from launch.remote.login import KERBEROS, TicketHandler


class Transport:
    """A connection that notes what is sent."""

    server_mode, auth_timeout, session_id = False, 5.0, b"session"

    def __init__(self) -> None:
        self.sent: List[paramiko.Message] = []
        self.lock, self.saved_exception = threading.RLock(), None
        self._log = lambda *_: None

    def _send_message(self, message: paramiko.Message) -> None:
        self.sent.append(paramiko.Message(message.asbytes()))

    def is_active(self) -> bool:
        return True

    def get_exception(self) -> Optional[Exception]:
        return self.saved_exception

    def take(self) -> Any:
        """Return the kind of the only message since the last call, and the message behind it."""
        (message,), self.sent = self.sent, []
        return ord(message.get_byte()), message


class Exchange:
    """Both sides' tokens: ours are sure after the second."""

    complete = False

    def __init__(self, fails: bool = False):
        self.received: List[Any] = []
        self.signed, self._fails = b"", fails

    def step(self, token: Any) -> Optional[bytes]:
        self.received.append(token)
        if self._fails:
            raise ValueError("Major (1): bad, Minor (2): Clock skew too great")
        self.complete = len(self.received) == 2
        return None if self.complete else b"ours"

    def get_signature(self, data: bytes) -> bytes:
        self.signed = data
        return b"signature"


def words(*values: str) -> paramiko.Message:
    message = paramiko.Message()
    for value in values:
        message.add_string(value)
    return paramiko.Message(message.asbytes())


def said(content: bytes) -> paramiko.Message:
    message = paramiko.Message()
    message.add_string(content)
    return paramiko.Message(message.asbytes())


@pytest.fixture
def login() -> Any:
    def begun(exchange: Exchange) -> Any:
        transport, answered = Transport(), threading.Event()
        handler = TicketHandler(transport, exchange)
        handler.begin("alice", answered)
        assert transport.take()[0] == common.MSG_SERVICE_REQUEST

        def hear(kind: int, message: paramiko.Message) -> None:
            handler._handler_table[kind](message)

        hear(common.MSG_SERVICE_ACCEPT, words("ssh-userauth"))
        return SimpleNamespace(transport=transport, handler=handler, answered=answered, hear=hear)

    return begun


def test_a_ticket_is_asked_for_exchanged_and_signs_the_session(login: Any) -> None:
    exchange = Exchange()
    found = login(exchange)
    kind, request = found.transport.take()
    assert kind == common.MSG_USERAUTH_REQUEST
    assert [request.get_text() for _ in range(3)] == ["alice", "ssh-connection", "gssapi-with-mic"]
    assert (request.get_int(), request.get_string()) == (1, KERBEROS)

    found.hear(common.MSG_USERAUTH_GSSAPI_RESPONSE, said(KERBEROS))
    kind, token = found.transport.take()
    assert (kind, token.get_string()) == (common.MSG_USERAUTH_GSSAPI_TOKEN, b"ours")

    found.hear(common.MSG_USERAUTH_GSSAPI_TOKEN, said(b"theirs"))
    kind, mic = found.transport.take()
    assert (kind, mic.get_string()) == (common.MSG_USERAUTH_GSSAPI_MIC, b"signature")
    assert exchange.received == [None, b"theirs"]
    signed = paramiko.Message(exchange.signed)
    assert (signed.get_string(), ord(signed.get_byte())) == (b"session", common.MSG_USERAUTH_REQUEST)
    assert [signed.get_text() for _ in range(3)] == ["alice", "ssh-connection", "gssapi-with-mic"]
    assert signed.get_remainder() == b"" and not found.answered.is_set()


@pytest.mark.parametrize(
    ("chosen", "fails", "why"),
    [(KERBEROS, True, "Clock skew too great"), (b"\6\1\1", False, "another mechanism than Kerberos: 060101")],
)
def test_what_goes_wrong_here_ends_the_login_and_not_the_connection(
    login: Any, chosen: bytes, fails: bool, why: str
) -> None:
    found = login(Exchange(fails))
    found.transport.take()
    found.hear(common.MSG_USERAUTH_GSSAPI_RESPONSE, said(chosen))
    with pytest.raises(paramiko.AuthenticationException, match=why):
        found.handler.wait_for_response(found.answered)
    assert found.transport.sent == []


def test_a_hosts_words_about_an_error_wait_for_its_refusal(login: Any) -> None:
    found = login(Exchange())
    for kind in (common.MSG_USERAUTH_GSSAPI_ERROR, common.MSG_USERAUTH_GSSAPI_ERRTOK):
        found.hear(kind, said(b"?"))
    assert not found.answered.is_set()
