"""Apply all rules, and report their findings to a person or to a program."""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from launch.check import exposure, host_rules, others, unlike
from launch.check.connectivity import ways
from launch.check.evidence import Evidence, Facts
from launch.check.findings import Finding, Note, Rule, grouped
from launch.view.console import fold

RULES: Tuple[Rule, ...] = (
    others.unanswered,
    host_rules.run_up,
    host_rules.python,
    unlike.versions,
    host_rules.programs,
    host_rules.ports,
    ways,
    exposure.public,
    host_rules.guard,
    host_rules.gpus,
    host_rules.folders,
    host_rules.clock,
    host_rules.proxies,
    unlike.code,
    exposure.open_ports,
)


_VERSIONS = {"python": "Python", "tensorflow": "TensorFlow", "numpy": "numpy"}


class Verdict(NamedTuple):
    """The findings, the notes, and the hosts without a finding."""

    evidence: Evidence
    findings: List[Finding]
    notes: List[Finding]
    healthy: Tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Return whether a run could start and train."""
        return not self.findings


def judge(evidence: Evidence) -> Verdict:
    """Applies every rule."""
    told = grouped(finding for rule in RULES for finding in rule(evidence))
    findings = [finding for finding in told if not isinstance(finding, Note)]
    ill = {host for finding in findings for host in finding.hosts}
    healthy = tuple(host for host in evidence.facts if host not in ill)
    return Verdict(evidence, findings, [note for note in told if isinstance(note, Note)], healthy)


def as_values(verdict: Verdict) -> Dict[str, Any]:
    """Return the values that ``check --json`` prints."""
    facts, healthy = verdict.evidence.facts, set(verdict.healthy)
    return {
        "ok": verdict.ok,
        "findings": [finding.as_values() for finding in verdict.findings],
        "notes": [note.as_values() for note in verdict.notes],
        "hosts": [
            {"host": host, "ok": host in healthy, "answered": host in facts, **_shown(facts.get(host))}
            for host in verdict.evidence.plan.hosts
        ],
    }


def _shown(facts: Optional[Facts]) -> Dict[str, Any]:
    """A host's facts as ``check --json`` has them; all null of one that did not answer."""
    if facts is None:
        return dict.fromkeys((*_VERSIONS, "driver", "gpus", "clock", "folders", "run", "addresses"))
    return {
        **{kind: facts["versions"].get(kind, {}).get("version") for kind in _VERSIONS},
        "driver": facts["driver"], "gpus": facts["gpus"], "clock": facts["clock"], "folders": facts["folders"],
        "run": facts["run"] and facts["run"]["run"], "addresses": facts["names"],
    }  # fmt: skip


def told(verdict: Verdict) -> List[str]:
    """Return lines for a person: findings with their advice, then notes, then the healthy hosts."""
    lines = []
    for finding in verdict.findings:
        lines += [f"{fold(finding.hosts)}: {finding.what}", *([f"    {finding.mend}"] if finding.mend else [])]
    for note in verdict.notes:
        lines.append("note: " + "; ".join(filter(None, [f"{fold(note.hosts)}: {note.what}", note.mend])))
    return [*lines, _summary(verdict)]


def _summary(verdict: Verdict) -> str:
    """``healthy: gpu[01-03] (3 of 4 hosts): Python 3.7.16, TensorFlow 1.15.0, numpy 1.18.5``"""
    if not verdict.healthy:
        return f"healthy: none of {len(verdict.evidence.plan.hosts)} hosts"
    count = f"{len(verdict.healthy)} of {len(verdict.evidence.plan.hosts)} hosts"
    shared = _shared([verdict.evidence.facts[host] for host in verdict.healthy])
    return f"healthy: {fold(verdict.healthy)} ({count})" + (f": {', '.join(shared)}" if shared else "")


def _shared(facts: List[Facts]) -> List[str]:
    """The versions that all of these hosts have."""
    found = []
    for kind, name in _VERSIONS.items():
        versions = {one["versions"].get(kind, {}).get("version") for one in facts}
        if len(versions) == 1 and None not in versions:
            found.append(f"{name} {versions.pop()}")
    return found
