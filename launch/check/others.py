"""Rules about hosts that did not answer."""

from typing import Iterator, NamedTuple

from launch.check.evidence import Evidence
from launch.check.findings import Finding
from launch.errors import HostProblem, ProblemKind


class Row(NamedTuple):
    """The report of ``check`` on a kind of problem.

    Attributes:
      finding: the kind of its finding.
      keeps: whether the advice begins with the problem's own. A question is answered by ``further`` instead.
      further: the further advice.
    """

    finding: str
    keeps: bool
    further: str


_LOG_IN = "see `ssh {host} true`"
_UNREACHED = Row("unreachable", True, _LOG_IN)
ROWS = {
    ProblemKind.UNREACHABLE: Row("unreachable", False, _LOG_IN),
    ProblemKind.UNKNOWN_NAME: Row("unreachable", True, ""),
    ProblemKind.HOST_KEY: Row("host-key", True, ""),
    ProblemKind.AUTHENTICATION: Row("unreachable", True, ""),
    ProblemKind.NO_PYTHON: Row("python", True, "see `ssh {host} ls /usr/bin /usr/local/bin`"),
    ProblemKind.OLD_PYTHON: Row("python", True, "name a newer one with the key python"),
    ProblemKind.PYTHON_ENDED: Row("python", True, "name another with the key python"),
    ProblemKind.FOLDER: Row("disk", True, ""),
    ProblemKind.DISK: Row(
        "disk", True, "see `ssh {host} df -h {workdir}`, or choose another folder with the key workdir"
    ),
    ProblemKind.SLOW: Row("slow", True, "see `ssh {host} uptime`, or give it longer with --deadline-s"),
    **dict.fromkeys(
        (
            ProblemKind.SSHD,
            ProblemKind.GATEWAY,
            ProblemKind.SILENT,
            ProblemKind.NOISE,
            ProblemKind.BROKEN,
            ProblemKind.REFUSED,
            ProblemKind.UNNAMED,
            ProblemKind.HERE,
        ),
        _UNREACHED,
    ),
}


def unanswered(evidence: Evidence) -> Iterator[Finding]:
    """Every host answers."""
    silent = [host for host in evidence.plan.hosts if host not in evidence.facts]
    named = {problem.host for problem in evidence.problems}
    behind = tuple(host for host in silent if host not in named)
    for problem in evidence.problems:
        kind, mend = ROWS[problem.kind].finding, _mend(problem, evidence.plan.spec.workdir)
        if problem.host in silent:
            yield Finding(kind, (problem.host,), problem.what, mend)
        else:  # a gateway
            yield Finding(kind, behind, f"{problem.host}: {problem.what}", mend)


def _mend(problem: HostProblem, workdir: str) -> str:
    row = ROWS[problem.kind]
    further = row.further.format(host=problem.host, workdir=workdir)
    return "; ".join(filter(None, [problem.advice if row.keeps else "", further]))
