"""The findings about hosts: problems, and notes on other facts; the evidence that rules read."""

import re
from dataclasses import dataclass, replace
from typing import Callable, Dict, Hashable, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from cluster.spec.model import Spec
from launch.agent.wire.check_request import CheckFacts
from launch.agent.wire.host_facts import HostFacts
from launch.errors import HostProblem
from launch.plan.plan import Plan


@dataclass(frozen=True)
class Finding:
    """One problem, with all the hosts that have it.

    Attributes:
      kind: Subject in one word; docs/check.md lists the values.
      hosts[]: Name of an affected host.
      what: Problem in words: what was expected, and what was found.
      mend: Next step in words, with its command in backticks.
    """

    kind: str
    hosts: Tuple[str, ...]
    what: str
    mend: str


class Note(Finding):
    """A remark about a fact that prevents no run; the exit code does not change."""


@dataclass(frozen=True)
class Survey:
    """The facts of the hosts that answered."""

    facts: Mapping[str, HostFacts]

    @property
    def file(self) -> str:
        """Return the path of the hosts file, for the commands in ``mend``."""
        return "FILE"

    @property
    def of_job(self) -> bool:
        """Return whether the tasks are known to be a job's, which are certain to import numpy and TensorFlow."""
        return False

    @property
    def image(self) -> Optional[str]:
        """Return the container image with the tasks' Python; None if the tasks run on a Python of the host."""
        return None


@dataclass(frozen=True)
class Evidence(Survey):
    """The facts from which the rules of a check derive their findings.

    Attributes:
      plan: the plan that is checked.
      problems: the reasons why hosts without facts did not answer.
      code: the hashes of the code bundles that a start would ship now.
    """

    facts: Mapping[str, CheckFacts]
    plan: Plan
    problems: Sequence[HostProblem]
    code: Mapping[str, str]

    @property
    def file(self) -> str:
        """Return the path of the hosts file, for the commands in ``mend``."""
        return str(self.plan.spec.path)

    @property
    def of_job(self) -> bool:
        """Return whether the run has a job; if so, its tasks are certain to import numpy and TensorFlow."""
        return self.plan.spec.job is not None

    @property
    def image(self) -> Optional[str]:
        """Return the container image with the tasks' Python; None if the tasks run on a Python of the host."""
        return None if self.plan.spec.container is None else self.plan.spec.container.image


Rule = Callable[[Evidence], Iterable[Finding]]


def grouped(findings: Iterable[Finding]) -> List[Finding]:
    """Merge equal findings on several hosts into one finding.

    The merged finding has the position and the command of the first of the equal findings.
    """
    alike: Dict[Hashable, List[Finding]] = {}
    for finding in findings:
        alike.setdefault((type(finding), finding.kind, finding.what, _mend_anywhere(finding)), []).append(finding)
    return [replace(found[0], hosts=tuple(dict.fromkeys(_hosts_of(found)))) for found in alike.values()]


def beside(finding: Finding, spec: Spec) -> Finding:
    """Return ``finding`` with commands for its transport: without ``ssh`` on this machine, with ``srun`` on Slurm."""
    away = "`srun --overlap -w {} " if spec.transport == "slurm" else "`ssh {} "
    mend = re.sub(r"`ssh (\S+) ", lambda word: "`" if spec.is_here(word[1]) else away.format(word[1]), finding.mend)
    return replace(finding, mend=mend)


def _mend_anywhere(finding: Finding) -> str:
    """Return the advice with the host's name removed."""
    return finding.mend.replace(f" {finding.hosts[0]} ", " … ") if len(finding.hosts) == 1 else finding.mend


def _hosts_of(findings: Iterable[Finding]) -> Iterator[str]:
    return (host for finding in findings for host in finding.hosts)
