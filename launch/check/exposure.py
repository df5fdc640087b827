"""Rules about access to the tasks' ports from outside the cluster. TensorFlow's servers authenticate nobody."""

from collections import defaultdict
from typing import Dict, Iterator, List, Set

from cluster.protocol import addresses
from cluster.protocol.addresses import host_of
from launch.check.evidence import Evidence
from launch.check.findings import Finding, Note

RUNS_CODE = "whoever reaches the tasks' ports runs code as this user: TensorFlow's servers have no authentication"


def open_ports(evidence: Evidence) -> Iterator[Finding]:
    """Yield a note on the open ports where the file sets no guard."""
    if evidence.plan.spec.guard is None:
        advice = "run them on a network that you trust, or let only the cluster in with guard: nftables"
        yield Note("open-ports", evidence.plan.hosts, RUNS_CODE, advice)


def public(evidence: Evidence) -> Iterator[Finding]:
    """No task's address is one that the internet can reach, unless the file says that it may."""
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
    """The addresses of each name, as any host that dials it sees them."""
    found: Dict[str, Set[str]] = defaultdict(set)
    for facts in evidence.facts.values():
        for name, meaning in facts["names"].items():
            found[name].update(() if isinstance(meaning, str) else meaning)
    return {name: sorted(every) for name, every in found.items()}
