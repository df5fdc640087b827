"""The login to a host, with one key after the other."""

from typing import Any, List, Sequence

import paramiko

from launch.remote.connection_failures import unanswered


class Login:
    """The strategy by which Paramiko logs in: one key after the other."""

    def __init__(self, user: str, keys: Sequence[paramiko.PKey]):
        self._user, self._keys = user, keys

    def authenticate(self, transport: Any) -> List[str]:
        """Log in; Paramiko calls this method.

        A connection that ends during the login is a refusal, because sshd drops logins before it asks for a key. A
        retry would count as a further failed login.

        Raises:
          AuthenticationException: every key was refused, or sshd asks for more than a key.
          Unanswered: sshd did not answer in time.
        """
        refused: Exception = paramiko.AuthenticationException("no key to offer: none in ssh-agent, none in ~/.ssh")
        for key in self._keys:
            try:
                further: List[str] = transport.auth_publickey(self._user, key)
            except (paramiko.SSHException, OSError, EOFError) as error:
                if not transport.is_active():
                    ended = f"sshd ended the login: {str(error) or type(error).__name__}"
                    raise paramiko.AuthenticationException(ended) from error
                silence = unanswered(error)
                if silence is not None:  # every further key would wait as long
                    raise silence from error
                refused = error
                continue
            if further:
                raise paramiko.AuthenticationException(f"sshd asks for {' or '.join(further)} in addition")
            return further
        raise refused
