"""Failed connections: the reason, the next step, and retries where they may help.

The pauses between attempts have full jitter: each pause is uniform between zero and a bound that doubles. So clients
that were refused at the same time do not return at the same time.
"""

import random
import socket
import time
from dataclasses import dataclass
from typing import Callable, Optional, Tuple, TypeVar

import paramiko

from launch.errors import HostProblem, ProblemKind
from launch.remote.openssh import ByHand

# Messages of Paramiko that have no exception class.
NO_ANSWER, OTHER_HOST_KEY = "Timeout opening channel", "no acceptable host key"
NO_BANNER, NO_KEYS, NO_LOGIN = "Error reading SSH protocol banner", "No existing session", "Authentication timeout"
IS_SSHD_UP = "check that the host is up and runs sshd"


class UnknownHostKey(paramiko.SSHException):  # type: ignore[misc]
    """The host shows a key, but no key is known for the host."""


class RevokedHostKey(paramiko.SSHException):  # type: ignore[misc]
    """The host shows a key that its administrators have revoked."""


class BadCertificate(paramiko.SSHException):  # type: ignore[misc]
    """Only an authority is known for the host, and the host's certificate is not from it, or not valid now."""


class NoTicket(paramiko.AuthenticationException):  # type: ignore[misc]
    """Neither a key nor a Kerberos ticket was accepted.

    Args:
      ticket: the reason why no ticket was available, or the side that refused it.
    """

    def __init__(self, refused: str, ticket: str):
        super().__init__(refused)
        self.ticket = ticket


class Unanswered(paramiko.SSHException):  # type: ignore[misc]
    """The host accepted the connection, and then sent nothing within ``ssh.connect_timeout_s``.

    ``stage`` is Paramiko's message for the part of the login that has no answer. Another try would wait as long again.
    """

    def __init__(self, stage: str):
        super().__init__(stage)
        self.stage = stage


def unanswered(error: BaseException, has_banner: bool = True) -> Optional[Unanswered]:
    """Return the silence that an error of Paramiko means; None for any other error.

    Paramiko has one message for a banner that does not arrive, and for a connection that ends before the banner.

    Args:
      has_banner: whether the host has sent its banner.
    """
    if isinstance(error, paramiko.AuthenticationException):
        return Unanswered(NO_LOGIN) if NO_LOGIN in str(error) else None
    if type(error) is not paramiko.SSHException:
        return None
    if NO_BANNER in str(error):
        return Unanswered(NO_BANNER) if isinstance(error.__context__, socket.timeout) else None
    if NO_KEYS in str(error):
        return Unanswered(NO_KEYS if has_banner else NO_BANNER)
    return None


def is_dropped(error: Exception) -> bool:
    """Return whether sshd accepted the connection and dropped it before any refusal.

    The cause is too many connections at once, or a busy host.
    """
    if isinstance(error, (EOFError, ConnectionResetError, BrokenPipeError)):
        return True
    # Exactly this class: its subclasses mean that a key, a user or an algorithm was refused.
    return type(error) is paramiko.SSHException and not _no_answer(error)


def _no_answer(error: Exception) -> bool:
    return isinstance(error, (socket.timeout, TimeoutError)) or NO_ANSWER in str(error)


# For each part of a login without an answer: the fact, and what to look at.
_SILENCES = {
    NO_BANNER: (
        "accepts the connection, and sends nothing within {seconds:g} s",
        "its sshd hangs: see that host's console and load; or another program has this port",
    ),
    NO_KEYS: (
        "begins SSH, and the key exchange does not end within {seconds:g} s",
        "long packets are lost on the way (MTU), or its sshd hangs; see `ping -M do -s 1472 {host}`, and `ping {host}`",
    ),
    NO_LOGIN: (
        "does not answer the login within {seconds:g} s",
        "its sshd waits, mostly for a directory (LDAP) or a file server with the home folders; see sshd's log there",
    ),
}


def explain(name: str, error: Exception, place: Tuple[str, int], by_hand: ByHand) -> HostProblem:
    """Return the reason why a host cannot be reached, and the next step, with a command if one helps.

    Args:
      name: the host.
      place: the dialled name and port.
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
    if isinstance(error, Unanswered):
        what, advice = _SILENCES[error.stage]
        fact = what.format(seconds=by_hand.settings.connect_timeout_s)
        return problem(ProblemKind.SSHD, f"{host} port {port} {fact}", advice.format(host=host))
    if _no_answer(error):
        unheard = f"no answer from {host} port {port} within {by_hand.settings.connect_timeout_s:g} s"
        return problem(ProblemKind.UNREACHABLE, unheard, "check that the host is up")
    if is_dropped(error):
        drops = f"{host} port {port} drops every login ({str(error) or type(error).__name__})"
        return problem(ProblemKind.SSHD, drops, "see sshd's log there, and MaxStartups in its sshd_config")
    if isinstance(error, (OSError, paramiko.ssh_exception.NoValidConnectionsError)):
        return problem(ProblemKind.UNREACHABLE, f"no SSH at {host} port {port} ({error.strerror or error})", IS_SSHD_UP)
    return problem(ProblemKind.UNREACHABLE, f"SSH to {host} port {port} failed: {type(error).__name__}: {error}")


T = TypeVar("T")


@dataclass(frozen=True)
class Backoff:
    """The pauses between attempts; no attempt begins later than ``total_s`` after the first one."""

    total_s: float
    first_s: float = 0.25
    longest_s: float = 4.0

    def pause_s(self, failures: int, chance: float) -> float:
        """Return the seconds to wait after ``failures`` failures; ``chance`` is uniform from 0 to 1."""
        return chance * min(self.longest_s, self.first_s * 2.0 ** (failures - 1))


def persist(
    attempt: Callable[[], T],
    passes: Callable[[Exception], bool],
    backoff: Backoff,
    wait: Callable[[float], bool],
    chance: Callable[[], float] = random.random,
    clock: Callable[[], float] = time.monotonic,
) -> T:
    """Return the result of ``attempt``; retry after each failure that ``passes`` calls temporary.

    ``wait`` waits the given seconds, and returns whether the caller must give up.

    Raises:
      Exception: the last exception of ``attempt``.
    """
    began, failures = clock(), 0
    while True:
        try:
            return attempt()
        except Exception as error:
            failures += 1
            pause_s = backoff.pause_s(failures, chance())
            late = clock() + pause_s > began + backoff.total_s
            if not passes(error) or late or wait(pause_s):
                raise
