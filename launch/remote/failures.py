"""The reason that a host could not be reached, the next step, and whether a retry may help."""

import socket
from typing import Tuple

import paramiko

from launch.errors import HostProblem, ProblemKind
from launch.remote.by_hand import ByHand

# Words of Paramiko, for which it has no class of its own.
NO_ANSWER, OTHER_HOST_KEY = "Timeout opening channel", "no acceptable host key"
IS_SSHD_UP = "check that the host is up and runs sshd"


class UnknownHostKey(paramiko.SSHException):  # type: ignore[misc]
    """The host shows a key, and none is known for it."""


class RevokedHostKey(paramiko.SSHException):  # type: ignore[misc]
    """The host shows a key that its administrators have taken back."""


class BadCertificate(paramiko.SSHException):  # type: ignore[misc]
    """Only an authority is known for the host, and the host's certificate is not one of it for this host, now."""


class NoTicket(paramiko.AuthenticationException):  # type: ignore[misc]
    """Neither a key nor a Kerberos ticket was accepted.

    Args:
      ticket: why there was no ticket, or who refused it.
    """

    def __init__(self, refused: str, ticket: str):
        super().__init__(refused)
        self.ticket = ticket


def is_dropped(error: Exception) -> bool:
    """Return whether sshd accepted the connection and dropped it before it refused anybody.

    The reason is too many connections at once, or a busy host.
    """
    if isinstance(error, (EOFError, ConnectionResetError, BrokenPipeError)):
        return True
    # This class itself: those derived from it say that a key, a user or an algorithm was refused.
    return type(error) is paramiko.SSHException and not _no_answer(error)


def _no_answer(error: Exception) -> bool:
    return isinstance(error, (socket.timeout, TimeoutError)) or NO_ANSWER in str(error)


def explain(name: str, error: Exception, place: Tuple[str, int], by_hand: ByHand) -> HostProblem:
    """Return why a host cannot be reached, and the next step, with a command where there is one.

    Args:
      name: the host.
      place: the name and the port that were dialled.
    """
    host, port = place
    known = by_hand.settings.known_hosts

    def problem(kind: ProblemKind, what: str, advice: str = "") -> HostProblem:
        return HostProblem(name, kind, what, advice)

    if isinstance(error, paramiko.BadHostKeyException) or OTHER_HOST_KEY in str(error):
        return problem(
            ProblemKind.HOST_KEY,
            f"its host key differs from the one in {known}: a reinstalled machine, or an intercepted connection",
            f"remove the old key with `{by_hand.forget()}`, verify the new key, then accept it with "
            f"`{by_hand.accept()}`",
        )
    if isinstance(error, RevokedHostKey):
        revoked = "its host key is revoked (@revoked in the known hosts): an intercepted connection, or an old key"
        return problem(ProblemKind.HOST_KEY, revoked, "ask its administrator; it needs another key")
    if isinstance(error, BadCertificate):
        renew = "ask its administrator for a certificate of this authority (@cert-authority in the known hosts)"
        return problem(ProblemKind.HOST_KEY, f"its host key has no valid certificate: {error}", renew)
    if isinstance(error, UnknownHostKey):
        see = f"verify the key, then accept it with `{by_hand.accept()}`"
        return problem(ProblemKind.HOST_KEY, f"its host key is not in {known}", see)
    if isinstance(error, paramiko.AuthenticationException):
        login = f"try `{by_hand.login()}`, and check the keys ssh.user and ssh.key"
        found = problem(ProblemKind.AUTHENTICATION, f"login refused ({error})", login)
        ticket = f"GSSAPIAuthentication is set for it, and fails: {error.ticket}" if isinstance(error, NoTicket) else ""
        return found.with_advice(ticket)
    if isinstance(error, socket.gaierror):
        unknown = f"this machine cannot resolve the name {host} ({error.strerror})"
        return problem(ProblemKind.UNKNOWN_NAME, unknown, f"see `getent hosts {host}`")
    if isinstance(error, paramiko.ChannelException):
        beyond = f"the gateway cannot reach {host} port {port} ({error.text})"
        return problem(ProblemKind.UNREACHABLE, beyond, IS_SSHD_UP)
    if _no_answer(error):
        unheard = f"no answer from {host} port {port} within {by_hand.settings.connect_timeout_s:g} s"
        return problem(ProblemKind.UNREACHABLE, unheard, "check that the host is up")
    if is_dropped(error):
        drops = f"{host} port {port} drops every login ({str(error) or type(error).__name__})"
        return problem(ProblemKind.SSHD, drops, "see sshd's log there, and MaxStartups in its sshd_config")
    if isinstance(error, (OSError, paramiko.ssh_exception.NoValidConnectionsError)):
        return problem(ProblemKind.UNREACHABLE, f"no SSH at {host} port {port} ({error.strerror or error})", IS_SSHD_UP)
    return problem(ProblemKind.UNREACHABLE, f"SSH to {host} port {port} failed: {type(error).__name__}: {error}")
