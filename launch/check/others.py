"""What keeps the hosts that did not answer from it."""

from typing import Iterator, Tuple

from launch.check.evidence import Evidence
from launch.check.findings import Finding
from launch.errors import HostProblem

# What a problem's sentence says, for many modules word them; its kind; what to try where the sentence has no command.
_KINDS = (
    ("host key", "host-key", ""),
    ("the key python", "python", "see `ssh {host} ls /usr/bin /usr/local/bin`"),
    ("expected Python", "python", "name a newer one with the key python"),
    ("ended before it answered", "python", "name another with the key python"),
    (
        "cannot write the code",
        "disk",
        "see `ssh {host} df -h {workdir}`, or choose another folder with the key workdir",
    ),
    ("", "unreachable", "see `ssh {host} true`"),
)
SLOW = "no answer within"  # of this host's part of the check, once it was reached


def unanswered(evidence: Evidence) -> Iterator[Finding]:
    """Every host can be asked."""
    silent = [host for host in evidence.plan.hosts if host not in evidence.facts]
    named = {problem.host for problem in evidence.problems}
    behind = tuple(host for host in silent if host not in named)
    for problem in evidence.problems:
        kind, what, mend = _explained(problem, evidence.plan.spec.workdir)
        if problem.host in silent:
            yield Finding(kind, (problem.host,), what, mend)
        else:  # a gateway
            yield Finding(kind, behind, f"{problem.host}: {what}", mend)


def _explained(problem: HostProblem, workdir: str) -> Tuple[str, str, str]:
    """Kind, what is wrong, what to do."""
    if problem.reason.startswith(SLOW):
        return "slow", problem.reason, f"see `ssh {problem.host} uptime`, or give it longer with --deadline-s"
    kind, advice = next((kind, advice) for words, kind, advice in _KINDS if words in problem.reason)
    what, mend = _halves(problem.reason)
    if "`" not in mend:
        known = [] if mend.endswith("?") else [mend]  # a question is answered by the command
        mend = "; ".join(filter(None, [*known, advice.format(host=problem.host, workdir=workdir)]))
    return kind, what, mend


def _halves(reason: str) -> Tuple[str, str]:
    """A problem's sentence: what is wrong, and from the first clause with a command, or the last, what to do."""
    clauses = reason.split("; ")
    first = next((number for number, clause in enumerate(clauses) if "`" in clause), max(1, len(clauses) - 1))
    return "; ".join(clauses[:first]), "; ".join(clauses[first:])
