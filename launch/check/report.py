"""Apply all rules, and report their findings as lines of text or as JSON."""

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple, Union

from cluster.protocol.typed_json import to_values
from launch.agent.wire.check_request import CheckFacts
from launch.agent.wire.host_facts import Clock, Failed, Gpu
from launch.check import fleet_rules, host_rules
from launch.check.findings import Evidence, Finding, Note, Rule, beside, grouped
from launch.check.ways import ways
from launch.view.console import fold

RULES: Tuple[Rule, ...] = (
    fleet_rules.unanswered,
    host_rules.gaps,
    host_rules.run_up,
    host_rules.container,
    host_rules.python,
    fleet_rules.versions,
    host_rules.programs,
    host_rules.ports,
    host_rules.ephemeral_ports,
    ways,
    fleet_rules.public,
    host_rules.guard,
    host_rules.gpus,
    host_rules.limits,
    host_rules.disks,
    host_rules.clock,
    host_rules.proxies,
    fleet_rules.drivers,
    fleet_rules.code,
    fleet_rules.open_ports,
    fleet_rules.folders,
)


@dataclass(frozen=True)
class CheckedHost:
    """A host of ``check --json``; its facts are null where the host did not answer.

    Attributes:
      host: Name of a host of the file.
      ok: True if no finding is about the host.
      answered: True if the host took part to the end; else the fields below are null.
      python: Version of the tasks' Python; null where that Python did not start.
      tensorflow: Version of TensorFlow that this Python imports; null without TensorFlow.
      numpy: Version of numpy that this Python imports; null without numpy.
      driver: Version of the NVIDIA driver; null without a driver.
      folders: For each path: free_bytes, or the error that prevents writing.
      run: Full name of the live run of this name; null without one.
      addresses: For each host name: its addresses as this host resolves them, or the error.
    """

    host: str
    ok: bool
    answered: bool
    python: Optional[str] = None
    tensorflow: Optional[str] = None
    numpy: Optional[str] = None
    driver: Optional[str] = None
    gpus: Optional[List[Gpu]] = None
    clock: Optional[Clock] = None
    folders: Optional[Dict[str, Dict[str, Any]]] = None
    run: Optional[str] = None
    addresses: Optional[Mapping[str, Union[str, List[str]]]] = None


@dataclass(frozen=True)
class CheckReport:
    """The object of ``check --json``.

    The reference puts the word of ``findings.*`` before the meaning of each field of the items in ``findings``.

    Attributes:
      ok: True if there is no finding.
      findings.*: Finding:
      notes.*: Note:
    """

    ok: bool
    findings: List[Finding]
    notes: List[Finding]
    hosts: List[CheckedHost]


class Verdict(NamedTuple):
    """The result of all rules: the findings, the notes, and the hosts without a finding."""

    evidence: Evidence
    findings: List[Finding]
    notes: List[Finding]
    healthy: Tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Return whether a run could start and train."""
        return not self.findings


def judge(evidence: Evidence) -> Verdict:
    """Apply every rule to the evidence, and merge equal findings."""
    found = grouped(beside(finding, evidence.plan.spec) for rule in RULES for finding in rule(evidence))
    findings = [finding for finding in found if not isinstance(finding, Note)]
    ill = {host for finding in findings for host in finding.hosts}
    healthy = tuple(host for host in evidence.facts if host not in ill)
    return Verdict(evidence, findings, [note for note in found if isinstance(note, Note)], healthy)


def as_values(verdict: Verdict) -> Dict[str, Any]:
    """Return the values that ``check --json`` prints."""
    facts, healthy = verdict.evidence.facts, set(verdict.healthy)
    hosts = [_checked(host, host in healthy, facts.get(host)) for host in verdict.evidence.plan.hosts]
    return to_values(CheckReport(verdict.ok, verdict.findings, verdict.notes, hosts))


def _checked(host: str, ok: bool, facts: Optional[CheckFacts]) -> CheckedHost:
    if facts is None:
        return CheckedHost(host, ok, answered=False)
    folders: Dict[str, Dict[str, Any]] = {
        folder: {"free_bytes": None, "error": disk.error}
        if isinstance(disk, Failed)
        else {"free_bytes": disk.free_bytes, "error": None}
        for folder, disk in facts.disks.items()
    }
    return CheckedHost(
        host, ok, answered=True, **{kind: facts.version_of(kind) for kind in fleet_rules.NAMES}, driver=facts.driver,
        gpus=None if facts.gpus is None else facts.gpus.gpus, clock=facts.clock, folders=folders,
        run=facts.run.run if facts.run else None, addresses=facts.names,
    )  # fmt: skip


def lines(verdict: Verdict) -> List[str]:
    """Return lines for a person: findings with their advice, then notes, then the healthy hosts."""
    shown = []
    for finding in verdict.findings:
        shown += [f"{fold(finding.hosts)}: {finding.what}", *([f"    {finding.mend}"] if finding.mend else [])]
    for note in verdict.notes:
        shown.append("note: " + "; ".join(filter(None, [f"{fold(note.hosts)}: {note.what}", note.mend])))
    return [*shown, _summary(verdict)]


def _summary(verdict: Verdict) -> str:
    """Return ``healthy: gpu[01-03] (3 of 4 hosts): Python 3.7.16, TensorFlow 1.15.0, numpy 1.18.5``."""
    if not verdict.healthy:
        return f"healthy: none of {len(verdict.evidence.plan.hosts)} hosts"
    count = f"{len(verdict.healthy)} of {len(verdict.evidence.plan.hosts)} hosts"
    shared = _shared([verdict.evidence.facts[host] for host in verdict.healthy])
    return f"healthy: {fold(verdict.healthy)} ({count})" + (f": {', '.join(shared)}" if shared else "")


def _shared(facts: List[CheckFacts]) -> List[str]:
    """Return the versions that all of these hosts have."""
    found = []
    for kind, name in fleet_rules.NAMES.items():
        versions = {one.version_of(kind) for one in facts}
        if len(versions) == 1 and None not in versions:
            found.append(f"{name} {versions.pop()}")
    return found
