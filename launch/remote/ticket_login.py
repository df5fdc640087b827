"""The login with a Kerberos ticket: gssapi-with-mic of RFC 4462. Paramiko has it in some versions only."""

import threading
from typing import Any, Callable, Dict, List

import paramiko
from paramiko import common
from paramiko.auth_handler import AuthHandler

from launch.remote.kerberos import reason

METHOD, SERVICE = "gssapi-with-mic", "ssh-connection"
KERBEROS = bytes.fromhex("06092a864886f712010202")  # the mechanism, as DER has its number


def log_in(transport: paramiko.Transport, user: str, context: Any) -> List[str]:
    """Log in with a ticket, and return the methods that sshd asks for in addition.

    Args:
      context: an exchange of tokens with the host, as ``kerberos.context`` returns it.

    Raises:
      AuthenticationException: the host, or the library of Kerberos, refuses.
    """
    handler, answered = TicketHandler(transport, context), threading.Event()
    transport.auth_handler = handler
    handler.begin(user, answered)
    found: List[str] = handler.wait_for_response(answered)
    return found


class TicketHandler(AuthHandler):  # type: ignore[misc]
    """One login. Paramiko calls the methods in its own thread, as messages of sshd arrive."""

    def __init__(self, transport: paramiko.Transport, context: Any):
        super().__init__(transport)
        self._context = context

    def begin(self, user: str, answered: threading.Event) -> None:
        """Ask sshd for the service of logins; its answer leads to the request."""
        with self.transport.lock:
            self.auth_event, self.auth_method, self.username = answered, METHOD, user
            self._request_auth()

    @property
    def _client_handler_table(self) -> Dict[int, Callable[[paramiko.Message], None]]:
        return {
            **super()._client_handler_table,
            common.MSG_SERVICE_ACCEPT: self._request,
            common.MSG_USERAUTH_GSSAPI_RESPONSE: self._begin_exchange,
            common.MSG_USERAUTH_GSSAPI_TOKEN: lambda message: self._exchange(message.get_string()),
            common.MSG_USERAUTH_GSSAPI_ERROR: _ignore,
            common.MSG_USERAUTH_GSSAPI_ERRTOK: _ignore,
        }

    def _request(self, _: paramiko.Message) -> None:
        message = self._of_login(paramiko.Message())
        message.add_int(1)  # mechanism
        message.add_string(KERBEROS)
        self.transport._send_message(message)

    def _begin_exchange(self, message: paramiko.Message) -> None:
        chosen = message.get_string()
        if chosen != KERBEROS:
            self._give_up(f"sshd has chosen another mechanism than Kerberos: {chosen.hex()}")
            return
        self._exchange(None)

    def _exchange(self, received: Any) -> None:
        """Send the next token, and the signature of the session once both sides are sure."""
        try:
            token = self._context.step(received)
            signature = self._context.get_signature(self._signed()) if self._context.complete else None
        except Exception as error:  # the package has dozens of classes, which share none below this one
            self._give_up(reason(error))
            return
        if token:
            self._send(common.MSG_USERAUTH_GSSAPI_TOKEN, token)
        if signature is not None:
            self._send(common.MSG_USERAUTH_GSSAPI_MIC, signature)

    def _signed(self) -> bytes:
        message = paramiko.Message()
        message.add_string(self.transport.session_id)
        signed: bytes = self._of_login(message).asbytes()
        return signed

    def _of_login(self, message: paramiko.Message) -> paramiko.Message:
        message.add_byte(common.byte_chr(common.MSG_USERAUTH_REQUEST))
        for word in (self.username, SERVICE, METHOD):
            message.add_string(word)
        return message

    def _send(self, kind: int, content: bytes) -> None:
        message = paramiko.Message()
        message.add_byte(common.byte_chr(kind))
        message.add_string(content)
        self.transport._send_message(message)

    def _give_up(self, why: str) -> None:
        """End this login alone: an exception here would end the connection, which keys may still need."""
        self.transport.saved_exception = paramiko.AuthenticationException(why)
        self.authenticated = False
        self.auth_event.set()


def _ignore(_: paramiko.Message) -> None:
    """Wait for the refusal that follows."""
