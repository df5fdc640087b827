"""The reason why ``ssh`` has reached no host, from its text on stderr, and the next step.

The text also has the lines of a gateway's ``ssh``. So a line about a refusal counts more than a line about a connection
that ended, because the refusal may have ended that connection.
"""

import re
from typing import Any, Dict, Match, NamedTuple, Optional

from launch.agent.text import plain
from launch.errors import HostProblem, ProblemKind
from launch.openssh.ssh_program import SshProgram, forget

IS_SSHD_UP = "check that the host is up and runs sshd"
SEE_LOG = "see sshd's log there, and MaxStartups and PerSourcePenalties in its sshd_config"
FAILED = 255  # the exit code of ssh for its own failures


class Meaning(NamedTuple):
    """A pattern for a text of ``ssh``, and the problem that the text means.

    In ``what`` and ``advice``, names in braces are replaced by the pattern's groups, or by commands for a person.
    """

    pattern: str
    kind: ProblemKind
    what: str
    advice: str


_MEANINGS = (
    Meaning(
        r"Offending .* key in (?P<file>.+):\d+[\s\S]*ey for (?P<entry>\S+) has changed",
        ProblemKind.HOST_KEY,
        "the host key of {entry} differs from the one in {file}: a reinstalled machine, or an intercepted connection",
        "remove the old key with `{forget}`, verify the new key, then accept it with `{accept}`",
    ),
    Meaning(
        r"key for (?P<entry>\S+) (is|was) (marked as )?revoked",
        ProblemKind.HOST_KEY,
        "the host key of {entry} is revoked: an intercepted connection, or an old key",
        "ask the host's administrator; the host needs another key",
    ),
    Meaning(
        r"(?P<line>.*Host key verification failed.*|No .* host key is known for .*)",
        ProblemKind.HOST_KEY,
        "ssh knows no host key of this host, or of a gateway before it",
        "verify the key, then accept it with `{accept}`",
    ),
    Meaning(
        r"(?P<line>\S+: Permission denied \(\S*(keyboard-interactive|password)\S*\))",
        ProblemKind.AUTHENTICATION,
        "login refused ({line})",
        "try `{login}`; if that asks for a password or a code, first set ControlPath and log in with `{master}`",
    ),
    Meaning(
        r"(?P<line>\S+: Permission denied \(.*\))|(?P<many>Too many authentication failures)",
        ProblemKind.AUTHENTICATION,
        "login refused ({line}{many})",
        "try `{login}`; if that asks for a passphrase, `ssh-add` the key; otherwise see ssh.user and ssh.key",
    ),
    Meaning(
        r"Could not resolve hostname (?P<host>\S+): (?P<why>.*)",
        ProblemKind.UNKNOWN_NAME,
        "this machine cannot resolve the name {host} ({why})",
        "see `getent hosts {host}`",
    ),
    Meaning(
        r"UNKNOWN port \d+ timed out",
        ProblemKind.UNREACHABLE,
        "no answer within {within_s:g} s through its gateway",
        "check that the host is up",
    ),
    Meaning(
        r"onnect(ion)? to (host )?(?P<host>\S+) port (?P<port>\d+):? .*timed out",
        ProblemKind.UNREACHABLE,
        "no answer from {host} port {port} within {within_s:g} s",
        "check that the host is up",
    ),
    Meaning(
        r"connect to host (?P<host>\S+) port (?P<port>\d+): (?P<why>.*)",
        ProblemKind.UNREACHABLE,
        "no SSH at {host} port {port} ({why})",
        IS_SSHD_UP,
    ),
    Meaning(
        r"open failed: (?P<why>.*)|stdio forwarding failed",
        ProblemKind.UNREACHABLE,
        "the gateway cannot reach it ({why})",
        IS_SSHD_UP,
    ),
    Meaning(
        r"(?i)(?P<line>.* line \d+: (bad|missing|no argument|unsupported|invalid|keyword|too many|integer)\b.*)",
        ProblemKind.HERE,
        "the SSH configuration: {line}",
        "correct it; see `{options}`",
    ),
    Meaning(
        r"^(?!kex_|ssh_)(?P<line>.*)\n[\s\S]*UNKNOWN port \d+",
        ProblemKind.UNREACHABLE,
        "its gateway or ProxyCommand ended before it was connected ({line})",
        "try `{login}`",
    ),
    Meaning(
        r"(?P<line>(kex|ssh)_exchange_identification: .*)",
        ProblemKind.SSHD,
        "sshd drops every login ({line})",
        SEE_LOG,
    ),
    Meaning(
        r"(?P<line>.*(Connection (to \S+ )?(closed|reset)|Broken pipe|[Dd]isconnect).*)",
        ProblemKind.AUTHENTICATION,
        "sshd ended the login ({line})",
        "see sshd's log there",
    ),
)


def explain(program: SshProgram, stderr: str) -> Optional[HostProblem]:
    """Return the problem that the text of ``ssh`` in ``stderr`` names; None for an unknown text."""
    text = "\n".join(map(plain, stderr.splitlines()))
    for meaning in _MEANINGS:
        found = re.search(meaning.pattern, text)
        if found:
            words = _words(program, found)
            what, advice = meaning.what.format(**words), meaning.advice.format(**words)
            return HostProblem(program.name, meaning.kind, what, advice)
    return None


def _words(program: SshProgram, found: Match[str]) -> Dict[str, Any]:
    """Return what replaces the names in braces."""
    groups = {name: value or "" for name, value in found.groupdict().items()}
    return {
        **groups, "forget": forget(groups.get("entry", ""), groups.get("file", "")), "accept": program.accept(),
        "login": program.login(), "master": program.login("-MNf"), "options": program.login("-G"),
        "within_s": program.settings.connect_timeout_s,
    }  # fmt: skip


def may_pass(error: Exception) -> bool:
    """Return whether a failure may be temporary: sshd has dropped the connection without a refusal."""
    return isinstance(error, HostProblem) and error.kind is ProblemKind.SSHD
