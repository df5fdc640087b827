"""The evidence of a check: the facts of hosts that answered, and the problems of the others."""

from dataclasses import dataclass
from typing import Any, Mapping, Sequence

from launch.errors import HostProblem
from launch.plan.plan import Plan

Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Evidence:
    """The plan that is checked, the facts of each host that answered, and why the others did not.

    ``facts`` are what ``launch.agent.verbs.check`` reports: ``ports`` {port: None or who holds it}, the
    fields of ``look``, and ``clock`` {"offset_s", "error_s"} against the launcher's.
    ``code`` has the hashes of what would be shipped now.
    """

    plan: Plan
    facts: Mapping[str, Facts]
    problems: Sequence[HostProblem]
    code: Mapping[str, str]

    @property
    def file(self) -> str:
        """The hosts file, as commands name it."""
        return str(self.plan.spec.path)
