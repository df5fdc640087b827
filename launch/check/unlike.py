"""Find what should be equal on all hosts and is not, and show it as a diff with the hosts folded."""

from collections import defaultdict
from typing import Callable, Dict, Iterator, List, Optional, Tuple, Type

from launch.check.evidence import Evidence, Facts
from launch.check.findings import Finding, Note
from launch.view.console import fold

Ask = Callable[[Facts], Optional[str]]  # the value that is compared; None where the host has none to compare


def versions(evidence: Evidence) -> Iterator[Finding]:
    """Python, TensorFlow and numpy are the same everywhere; for drivers it is enough to know."""
    for kind, name in (("python", "Python"), ("tensorflow", "TensorFlow"), ("numpy", "numpy")):
        mend = (
            f"name the same with the key python, or build one for all with `launch setup {evidence.file}` (key setup)"
        )
        yield from _differing(evidence, f"{kind}-differs", name, _version(kind), Finding, mend)
    yield from _differing(evidence, "driver-differs", "NVIDIA driver", lambda facts: facts["driver"], Note, "")


def code(evidence: Evidence) -> Iterator[Finding]:
    """Yield notes on runs that are up with code other than the current one.

    The current code is what would be shipped now. Runs on several hosts should also have equal code.
    """
    for host, facts in evidence.facts.items():
        if facts["run"] and facts["run"]["code"] and facts["run"]["code"] != evidence.code:
            yield Note("code-differs", (host,), f"{facts['run']['run']} runs other code than is here now", "")
    yield from _differing(evidence, "code-differs", "the code of runs that are up", _code, Note, "")


def _version(name: str) -> Ask:
    def ask(facts: Facts) -> Optional[str]:
        version: Optional[str] = facts["versions"].get(name, {}).get("version")
        return version

    return ask


def _code(facts: Facts) -> Optional[str]:
    return "+".join(facts["run"]["code"].values()) if facts["run"] else None


def _differing(
    evidence: Evidence, kind: str, name: str, ask: Ask, kind_of: Type[Finding], mend: str
) -> Iterator[Finding]:
    groups = by_value(evidence, ask)
    if len(groups) > 1:
        few = tuple(host for _, hosts in groups[1:] for host in hosts)
        yield kind_of(kind, few, f"{name} {shown(groups)}", mend)


def by_value(evidence: Evidence, ask: Ask) -> List[Tuple[str, List[str]]]:
    """The hosts of each value, the largest group first: [(value, hosts)]."""
    groups: Dict[str, List[str]] = defaultdict(list)
    for host, facts in evidence.facts.items():
        value = ask(facts)
        if value is not None:
            groups[value].append(host)
    return sorted(groups.items(), key=lambda group: -len(group[1]))


def shown(groups: List[Tuple[str, List[str]]]) -> str:
    """``1.15.0: gpu[01-03,07] | 2.4.1: gpu04``"""
    return " | ".join(f"{value}: {fold(hosts)}" for value, hosts in groups)
