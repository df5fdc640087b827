"""Rules about several hosts: silent hosts, differences between hosts, and access to their ports from elsewhere."""

from collections import defaultdict
from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Set, Tuple

from cluster.protocol import addresses
from cluster.protocol.addresses import host_of
from launch.check.findings import Evidence, Finding, Note, Survey
from launch.check.host_rules import LONGER
from launch.errors import HostProblem, ProblemKind
from launch.plan.split_folders import split_folders
from launch.view.console import fold

RUNS_CODE = "any client of the tasks' ports can run code as this user: TensorFlow's servers have no authentication"
NAMES = {"python": "Python", "tensorflow": "TensorFlow", "numpy": "numpy"}


class Row(NamedTuple):
    """The kind and the advice of the finding that ``check`` makes from a kind of problem.

    Attributes:
      finding: the kind of the finding.
      keeps: whether the finding's advice begins with the problem's own advice. If that is a question, ``further``
        replaces it.
      further: the advice to add.
    """

    finding: str
    keeps: bool
    further: str


_ANY = "sshd gateway silent noise broken ended refused unnamed here"
_LOG_IN = "see `ssh {host} true`"
_FOLDER = "see `ssh {host} df -h {workdir}`, or choose another folder with the key workdir"
ROWS = {
    **{ProblemKind(kind): Row("unreachable", True, _LOG_IN) for kind in _ANY.split()},
    ProblemKind.UNREACHABLE: Row("unreachable", False, _LOG_IN),
    ProblemKind.UNKNOWN_NAME: Row("unreachable", True, ""),
    ProblemKind.HOST_KEY: Row("host-key", True, ""),
    ProblemKind.AUTHENTICATION: Row("unreachable", True, ""),
    ProblemKind.NO_PYTHON: Row("python", True, "see `ssh {host} ls /usr/bin /usr/local/bin`"),
    ProblemKind.OLD_PYTHON: Row("python", True, "name a newer one with the key python"),
    ProblemKind.PYTHON_ENDED: Row("python", True, "name another with the key python"),
    ProblemKind.FOLDER: Row("disk", True, ""),
    ProblemKind.DISK: Row("disk", True, _FOLDER),
    ProblemKind.SLOW: Row("slow", True, LONGER),
}


def unanswered(evidence: Evidence) -> Iterator[Finding]:
    """Require that every host answers."""
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


def versions(survey: Survey) -> Iterator[Finding]:
    """Require the same Python, TensorFlow and numpy on all hosts."""
    build = f"build one for all with `launch setup {survey.file}` (key setup)"
    for kind, name in NAMES.items():
        for few, shown in differing({host: facts.version_of(kind) for host, facts in survey.facts.items()}):
            yield Finding(
                f"{kind}-differs", few, f"{name} {shown}", f"name the same Python with the key python, or {build}"
            )


def drivers(survey: Survey) -> Iterator[Finding]:
    """Yield a note if the hosts have different NVIDIA drivers; the difference prevents no run."""
    for few, shown in differing({host: facts.driver for host, facts in survey.facts.items()}):
        yield Note("driver-differs", few, f"NVIDIA driver {shown}", "")


def code(evidence: Evidence) -> Iterator[Finding]:
    """Yield notes on live runs whose code differs from the current code.

    The current code is the code that a start would ship now. Further notes name runs whose code differs between hosts.
    """
    running = {host: facts.run for host, facts in evidence.facts.items() if facts.run}
    for host, run in running.items():
        if run.code and run.code != evidence.code:
            yield Note("code-differs", (host,), f"{run.run} runs other code than this machine has now", "")
    for few, shown in differing({host: digests(run.code) for host, run in running.items()}):
        yield Note("code-differs", few, f"the code of runs that are up {shown}", "")


def digests(code: Mapping[str, str]) -> Optional[str]:
    """Return the shortened hashes of a run's code, such as ``job 1a2b3c4d launcher 5e6f7a8b``; None without code."""
    return " ".join(f"{kind} {digest[:8]}" for kind, digest in sorted(code.items())) or None


def differing(values: Mapping[str, Optional[str]]) -> Iterator[Tuple[Tuple[str, ...], str]]:
    """If ``values`` differ, yield the hosts whose value is not the most common one, and all values in words.

    Example of the words: ``1.15.0: gpu[01-03,07] | 2.4.1: gpu04``. A host whose value is None does not count.
    """
    groups: Dict[str, List[str]] = defaultdict(list)
    for host, value in values.items():
        if value is not None:
            groups[value].append(host)
    ranked = sorted(groups.items(), key=lambda group: -len(group[1]))
    if len(ranked) > 1:
        few = tuple(host for _, hosts in ranked[1:] for host in hosts)
        yield few, " | ".join(f"{value}: {fold(hosts)}" for value, hosts in ranked)


def open_ports(evidence: Evidence) -> Iterator[Finding]:
    """Yield a note that any client can connect to the tasks' ports, if the file has no key ``guard``."""
    if evidence.plan.spec.guard is None:
        advice = "run them on a trusted network, or admit only the cluster's hosts with guard: nftables"
        yield Note("open-ports", evidence.plan.hosts, RUNS_CODE, advice)


def folders(evidence: Evidence) -> Iterator[Finding]:
    """Yield a note on each folder of ``command`` in which every checkpoint would be incomplete."""
    for found in split_folders(evidence.plan.spec):
        yield Note("split-folder", found.hosts, found.what, found.mend)


def public(evidence: Evidence) -> Iterator[Finding]:
    """Require that no task's address can be reached from the internet, unless the file allows it."""
    plan = evidence.plan
    if addresses.may_be_public(plan.spec.guard, plan.spec.allow_public):
        return
    found = addresses.exposed({task.name: host_of(task.address) for task in plan.tasks}, _resolved(evidence))
    for task in plan.tasks:
        if task.name in found:
            where = f"{task.name} at {task.address}, which is {', '.join(found[task.name])}"
            what = f"the internet can reach {where}; {RUNS_CODE}"
            yield Finding("public", (task.host,), what, addresses.ADVICE)


def _resolved(evidence: Evidence) -> Dict[str, List[str]]:
    """Return the addresses of each name, as resolved by all hosts that dial it."""
    found: Dict[str, Set[str]] = defaultdict(set)
    for facts in evidence.facts.values():
        for name, meaning in facts.names.items():
            found[name].update(() if isinstance(meaning, str) else meaning)
    return {name: sorted(every) for name, every in found.items()}
