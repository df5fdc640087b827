"""Why a host could not be reached, what to do next, and whether trying again may help."""

import socket
from typing import Tuple

import paramiko

from cluster.spec.model import Ssh


class UnknownHostKey(paramiko.SSHException):  # type: ignore[misc]
    """The host shows a key, and none is known for it."""


def dropped(error: Exception) -> bool:
    """Whether sshd took the connection and let it go before anybody was refused: too many at once, or a busy host."""
    if isinstance(error, (EOFError, ConnectionResetError, BrokenPipeError)):
        return True
    # This class itself: those derived from it say that a key, a user or an algorithm was refused.
    return type(error) is paramiko.SSHException and not _no_answer(error)


def _no_answer(error: Exception) -> bool:
    return isinstance(error, (socket.timeout, TimeoutError)) or "Timeout opening channel" in str(error)


def explain(error: Exception, place: Tuple[str, int], settings: Ssh) -> str:
    """One line: the reason, and the next step, with a command where there is one."""
    host, port = place
    scan = f"ssh-keyscan -p {port} {host}"
    known = settings.known_hosts
    entry = host if port == 22 else f"[{host}]:{port}"
    if isinstance(error, paramiko.BadHostKeyException) or "no acceptable host key" in str(error):
        return (
            f"its host key is not the one in {known}: the machine was set up anew, or somebody is in between; "
            f"show the new key with `{scan} | ssh-keygen -lf -`, and if it is right, accept it with "
            f"`ssh-keygen -R '{entry}' -f {known} && {scan} >> {known}`"
        )
    if isinstance(error, UnknownHostKey):
        return (
            f"its host key is not in {known}; show it with `{scan} | ssh-keygen -lf -`, "
            f"and if it is right, accept it with `{scan} >> {known}`"
        )
    if isinstance(error, paramiko.AuthenticationException):
        return f"login refused ({error}); try `ssh -p {port} {host}`, and see the keys ssh.user and ssh.key"
    if isinstance(error, socket.gaierror):
        return f"the name {host} is not known here ({error.strerror}); see `getent hosts {host}`"
    if isinstance(error, paramiko.ChannelException):
        return f"the gateway cannot reach {host} port {port} ({error.text}); is the host up, and sshd on it?"
    if _no_answer(error):
        return f"no answer from {host} port {port} within {settings.connect_timeout_s:g} s; is the host up?"
    if dropped(error):
        return (
            f"{host} port {port} drops every login ({str(error) or type(error).__name__}); see sshd's log there, "
            "and MaxStartups in its sshd_config"
        )
    if isinstance(error, (OSError, paramiko.ssh_exception.NoValidConnectionsError)):
        return f"no SSH at {host} port {port} ({error.strerror or error}); is the host up, and sshd on it?"
    return f"SSH to {host} port {port} failed: {type(error).__name__}: {error}"
