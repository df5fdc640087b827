"""The login: with a Kerberos ticket where the SSH configuration asks for one, then with each key."""

from functools import partial
from typing import Any, Callable, List, Sequence

import paramiko

from launch.remote import kerberos, ticket_login
from launch.remote.failures import NoTicket
from launch.remote.kerberos import Kerberos

Try = Callable[[paramiko.Transport], List[str]]


class Login:
    """The login that Paramiko performs.

    Args:
      bound_s: seconds for the servers of Kerberos to give a ticket.
    """

    def __init__(self, user: str, keys: Sequence[paramiko.PKey], wanted: Kerberos, bound_s: float):
        self._user, self._keys, self._wanted, self._bound_s = user, keys, wanted, bound_s

    def authenticate(self, transport: paramiko.Transport) -> List[str]:
        """Log in, under the name that Paramiko has for it.

        Raises:
          AuthenticationException: every key was refused, and the ticket if one was asked for.
          EOFError: the connection was dropped before anything was refused.
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
        return ticket_login.log_in(transport, self._user, kerberos.context(self._wanted))

    def _in_turn(self, transport: paramiko.Transport, tries: Sequence[Try]) -> List[str]:
        refused: Exception = paramiko.AuthenticationException("no key to offer: none in ssh-agent, none in ~/.ssh")
        for number, log_in in enumerate(tries):
            try:
                further = log_in(transport)
            except (paramiko.SSHException, OSError, EOFError) as error:
                if not transport.is_active():  # let go: by a busy sshd, or after too many keys
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
