"""The findings of ``check``: what is wrong, and notes on what is not."""

from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, Hashable, Iterable, Iterator, List, Tuple

from launch.check.evidence import Evidence
from launch.view.console import fold


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, on all the hosts that have it.

    Attributes:
      kind: one word for a program; docs/check.md lists them.
      hosts: where it is wrong.
      what: expected and found, in words, without the hosts' names.
      mend: what to do, with the command in backticks where there is one.
    """

    kind: str
    hosts: Tuple[str, ...]
    what: str
    mend: str

    def as_values(self) -> Dict[str, Any]:
        """Return the finding as ``check --json`` prints it."""
        return {"kind": self.kind, "hosts": list(self.hosts), "what": self.what, "mend": self.mend}


class Note(Finding):
    """A remark that keeps no run from training; it does not change the exit code."""


Rule = Callable[[Evidence], Iterable[Finding]]


def on(hosts: Iterable[str]) -> str:
    """Return a command's prefix for hosts: ``ssh gpu01`` for one, a remark for more."""
    listed = list(hosts)
    return f"ssh {listed[0]} " if len(listed) == 1 else f"on each of {fold(listed)}: "


def grouped(findings: Iterable[Finding]) -> List[Finding]:
    """Merge the same finding on several hosts into one.

    The merged findings are in the order of their first, and have the command of that one.
    """
    alike: Dict[Hashable, List[Finding]] = {}
    for finding in findings:
        alike.setdefault((type(finding), finding.kind, finding.what, _mend_anywhere(finding)), []).append(finding)
    return [replace(found[0], hosts=tuple(dict.fromkeys(_hosts_of(found)))) for found in alike.values()]


def _mend_anywhere(finding: Finding) -> str:
    """Return the advice without the host that it is for."""
    return finding.mend.replace(f"ssh {finding.hosts[0]} ", "ssh … ") if len(finding.hosts) == 1 else finding.mend


def _hosts_of(findings: Iterable[Finding]) -> Iterator[str]:
    return (host for finding in findings for host in finding.hosts)
