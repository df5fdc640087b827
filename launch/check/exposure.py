"""Rules about access to the tasks' ports from outside the cluster. TensorFlow's servers authenticate nobody."""

from collections import defaultdict
from typing import Dict, Iterator, Set

from cluster.protocol.addresses import host_of, is_public
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
    if evidence.plan.spec.guard is not None or evidence.plan.spec.allow_public:
        return
    reachable = _reachable(evidence)
    for task in evidence.plan.tasks:
        found = reachable.get(host_of(task.address), ())
        if found:
            where = f"{task.name} at {task.address}, which is {', '.join(sorted(found))}"
            mend = "give it a private address with the key address, or set guard: nftables, or allow_public: true"
            yield Finding("public", (task.host,), f"the internet can reach {where}; {RUNS_CODE}", mend)


def _reachable(evidence: Evidence) -> Dict[str, Set[str]]:
    """The public addresses of each name, as any host that dials it sees them."""
    found: Dict[str, Set[str]] = defaultdict(set)
    for facts in evidence.facts.values():
        for name, meaning in facts["names"].items():
            found[name].update(() if isinstance(meaning, str) else filter(is_public, meaning))
    return found
