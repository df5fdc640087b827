"""The login: with a Kerberos ticket where the SSH configuration asks for one, then with each key.

The login with a ticket is the method gssapi-with-mic of RFC 4462. Only some versions of Paramiko have that method.
"""

import threading
from functools import partial
from typing import Any, Callable, Dict, List, Sequence

import paramiko
from paramiko import common
from paramiko.auth_handler import AuthHandler

from launch.remote import kerberos
from launch.remote.connection_failures import NoTicket, unanswered
from launch.remote.kerberos import Kerberos, reason

METHOD, SERVICE = "gssapi-with-mic", "ssh-connection"
KERBEROS = bytes.fromhex("06092a864886f712010202")  # the mechanism's number in DER


def log_in_with_ticket(transport: paramiko.Transport, user: str, context: Any) -> List[str]:
    """Log in with a ticket, and return the methods that sshd asks for in addition.

    Args:
      context: an exchange of tokens with the host, from ``kerberos.context``.

    Raises:
      AuthenticationException: the host, or the Kerberos library, refuses.
    """
    handler, answered = TicketHandler(transport, context), threading.Event()
    transport.auth_handler = handler
    handler.begin(user, answered)
    found: List[str] = handler.wait_for_response(answered)
    return found


class TicketHandler(AuthHandler):  # type: ignore[misc]
    """One login. Paramiko calls the methods in its own thread, when messages from sshd arrive."""

    def __init__(self, transport: paramiko.Transport, context: Any):
        super().__init__(transport)
        self._context = context

    def begin(self, user: str, answered: threading.Event) -> None:
        """Ask sshd for the login service; the answer triggers the request."""
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
        message.add_int(1)  # number of mechanisms
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
        """End only this login: an exception here would end the connection, which the login with keys needs."""
        self.transport.saved_exception = paramiko.AuthenticationException(why)
        self.authenticated = False
        self.auth_event.set()


def _ignore(_: paramiko.Message) -> None:
    """Wait for the refusal that follows."""


Try = Callable[[paramiko.Transport], List[str]]


class Login:
    """The login that Paramiko performs.

    Args:
      bound_s: seconds in which the Kerberos servers must issue a ticket.
    """

    def __init__(self, user: str, keys: Sequence[paramiko.PKey], wanted: Kerberos, bound_s: float):
        self._user, self._keys, self._wanted, self._bound_s = user, keys, wanted, bound_s

    def authenticate(self, transport: paramiko.Transport) -> List[str]:
        """Log in; Paramiko calls this method.

        Raises:
          AuthenticationException: every key was refused, and the ticket too if it was requested.
          EOFError: the connection was dropped before anything was refused.
          Unanswered: sshd did not answer in time.
        """
        if not self._wanted.logs_in:
            return self._in_turn(transport, self._of_keys())
        without = kerberos.obstacle(self._wanted, self._bound_s)
        if without is None:
            try:
                return self._in_turn(transport, [self._with_ticket])
            except paramiko.BadAuthenticationType:
                without = "its sshd takes no tickets; set GSSAPIAuthentication yes in its sshd_config"
            except paramiko.AuthenticationException as error:
                without = f"it refuses the ticket of this user ({error}); see sshd's log there, and ~/.k5login"
        try:
            return self._in_turn(transport, self._of_keys())
        except paramiko.AuthenticationException as error:
            raise NoTicket(str(error), without) from error

    def _of_keys(self) -> List[Try]:
        return [partial(_with_key, self._user, key) for key in self._keys]

    def _with_ticket(self, transport: paramiko.Transport) -> List[str]:
        return log_in_with_ticket(transport, self._user, kerberos.context(self._wanted))

    def _in_turn(self, transport: paramiko.Transport, tries: Sequence[Try]) -> List[str]:
        refused: Exception = paramiko.AuthenticationException("no key to offer: none in ssh-agent, none in ~/.ssh")
        for number, log_in in enumerate(tries):
            try:
                further = log_in(transport)
            except (paramiko.SSHException, OSError, EOFError) as error:
                silence = unanswered(error)
                if silence is not None:  # every further key would wait as long
                    raise silence from error
                if not transport.is_active():  # dropped by a busy sshd, or after too many keys
                    raise (refused if number else EOFError("during the login")) from error
                refused = error
                continue
            if further:
                raise paramiko.AuthenticationException(f"sshd asks for {' or '.join(further)} in addition")
            return further
        raise refused


def _with_key(user: str, key: paramiko.PKey, transport: Any) -> List[str]:
    further: List[str] = transport.auth_publickey(user, key)
    return further
