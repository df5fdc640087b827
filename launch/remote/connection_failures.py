"""Failed connections of Fabric: the reason, the next step, and whether a retry may help."""

import socket
from typing import Optional, Tuple

import paramiko

from launch.errors import HostProblem, ProblemKind
from launch.openssh.refusals import IS_SSHD_UP, SEE_LOG
from launch.openssh.ssh_program import SshProgram, forget

# Messages of Paramiko that have no exception class.
NO_ANSWER, OTHER_HOST_KEY = "Timeout opening channel", "no acceptable host key"
NO_BANNER, NO_KEYS, NO_LOGIN = "Error reading SSH protocol banner", "No existing session", "Authentication timeout"
NO_ROOM = 4  # SSH_OPEN_RESOURCE_SHORTAGE
# What Fabric cannot do, ssh can.
OPENSSH = "set `ssh.transport: openssh`"
OTHER_WAYS = (
    f"if that succeeds with a certificate, ticket, security key or second factor, {OPENSSH}; otherwise check the "
    "values of ssh.user and ssh.key"
)
BY_CERTIFICATE = f"an authority signs its key (@cert-authority): {OPENSSH}, which accepts its certificate"


class UnknownHostKey(paramiko.SSHException):  # type: ignore[misc]
    """The host shows a key, but no key is known for the host.

    Args:
      authority: whether an authority signs the keys of such hosts.
    """

    def __init__(self, text: str, authority: bool = False):
        super().__init__(text)
        self.authority = authority


class RevokedHostKey(paramiko.SSHException):  # type: ignore[misc]
    """The host shows a key that its administrators have revoked."""


class Unanswered(paramiko.SSHException):  # type: ignore[misc]
    """The host accepted the connection, but then sent nothing within ``ssh.connect_timeout_s``.

    ``stage`` is Paramiko's message for the part of the login that has no answer. A second try would take just as long.
    """

    def __init__(self, stage: str):
        super().__init__(stage)
        self.stage = stage


def unanswered(error: BaseException, has_banner: bool = True) -> Optional[Unanswered]:
    """Return ``Unanswered`` if Paramiko's ``error`` means that the host was silent; else None.

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


def is_full(error: Optional[BaseException]) -> bool:
    """Return whether ``error`` means that a gateway opens no further channel on a connection."""
    return isinstance(error, paramiko.ChannelException) and error.code == NO_ROOM


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


def explain(name: str, error: Exception, place: Tuple[str, int], program: SshProgram, entry: str) -> HostProblem:
    """Return the reason why a host cannot be reached, and the next step, with a command if one helps.

    Args:
      name: the host.
      place: the dialled name and port.
      program: the command ``ssh`` for the same connection, for the advice.
      entry: the host's name among the known hosts.
    """
    host, port = place
    known = program.settings.known_hosts

    def problem(kind: ProblemKind, what: str, advice: str = "") -> HostProblem:
        return HostProblem(name, kind, what, advice)

    if isinstance(error, paramiko.BadHostKeyException) or OTHER_HOST_KEY in str(error):
        return problem(
            ProblemKind.HOST_KEY,
            f"its host key differs from the one in {known}: a reinstalled machine, or an intercepted connection",
            f"remove the old key with `{forget(entry, known)}`, verify the new key, then accept it with "
            f"`{program.accept(known)}`",
        )
    if isinstance(error, RevokedHostKey):
        revoked = "its host key is revoked (@revoked in the known hosts): an intercepted connection, or an old key"
        return problem(ProblemKind.HOST_KEY, revoked, "ask the host's administrator; the host needs another key")
    if isinstance(error, UnknownHostKey):
        see = f"verify the key, then accept it with `{program.accept(known)}`"
        found = problem(ProblemKind.HOST_KEY, f"its host key is not in {known}", see)
        return found.with_advice(BY_CERTIFICATE) if error.authority else found
    if isinstance(error, paramiko.AuthenticationException):
        login = f"try `{program.login()}`; {OTHER_WAYS}"
        return problem(ProblemKind.AUTHENTICATION, f"login refused ({error})", login)
    if isinstance(error, paramiko.ProxyCommandFailure):
        return problem(ProblemKind.UNREACHABLE, f"its ProxyCommand ended ({error.error})", f"try `{program.login()}`")
    if isinstance(error, socket.gaierror):
        unknown = f"this machine cannot resolve the name {host} ({error.strerror})"
        return problem(ProblemKind.UNKNOWN_NAME, unknown, f"see `getent hosts {host}`")
    if isinstance(error, paramiko.ChannelException):
        beyond = f"the gateway cannot reach {host} port {port} ({error.text})"
        return problem(ProblemKind.UNREACHABLE, beyond, IS_SSHD_UP)
    if isinstance(error, Unanswered):
        what, advice = _SILENCES[error.stage]
        fact = what.format(seconds=program.settings.connect_timeout_s)
        return problem(ProblemKind.SSHD, f"{host} port {port} {fact}", advice.format(host=host))
    if _no_answer(error):
        unheard = f"no answer from {host} port {port} within {program.settings.connect_timeout_s:g} s"
        return problem(ProblemKind.UNREACHABLE, unheard, "check that the host is up")
    if is_dropped(error):
        drops = f"{host} port {port} drops every login ({str(error) or type(error).__name__})"
        return problem(ProblemKind.SSHD, drops, SEE_LOG)
    if isinstance(error, (OSError, paramiko.ssh_exception.NoValidConnectionsError)):
        return problem(ProblemKind.UNREACHABLE, f"no SSH at {host} port {port} ({error.strerror or error})", IS_SSHD_UP)
    return problem(ProblemKind.UNREACHABLE, f"SSH to {host} port {port} failed: {type(error).__name__}: {error}")
