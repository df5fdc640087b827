"""The connections between hosts that tasks and agents will need, and the rule about failed connections.

In TensorFlow, the task that needs a tensor fetches it, so tasks connect in both directions. A worker dials the ps for
variables, and a ps dials the worker for gradients. With a job, workers do not connect to other workers, and the
evaluator fetches checkpoints from the chief. A program under ``command:`` may open sessions to every task, so every
connection must be possible. The agents of all hosts dial the lead's agent.
"""

from collections import defaultdict
from typing import Dict, FrozenSet, Iterator, List, Mapping, NamedTuple, Sequence, Set, Tuple

from cluster.protocol.addresses import host_of
from launch.agent.network.doors import DialTarget
from launch.agent.wire.check_request import Unreached
from launch.agent.wire.run_request import TaskRequest
from launch.check.findings import Evidence, Finding
from launch.plan.plan import Plan
from launch.view.console import fold

CONTROL = "control"  # stands for the lead's agent among the roles
_Ways = Mapping[str, Tuple[str, ...]]
_BETWEEN_GRAPH: _Ways = {"worker": ("ps",), "ps": ("worker",)}
_IN_GRAPH: _Ways = {"worker": ("ps", "worker"), "ps": ("worker",)}
_ANY: _Ways = {"worker": ("ps", "worker"), "ps": ("ps", "worker")}


class Dials(NamedTuple):
    """The addresses that a host dials, and the host names in these addresses."""

    targets: Tuple[DialTarget, ...]
    names: Tuple[str, ...]


def dials(plan: Plan) -> Dict[str, Dials]:
    """Return the targets that each host dials.

    Hosts with tasks of the same roles share one object, so the result stays small.
    """
    homes = _homes(plan)
    shared: Dict[FrozenSet[str], Dials] = {}
    found = {}
    for host, roles in _roles(plan).items():
        reached = frozenset(reached for role in roles for reached in _reached(plan, role))
        if plan.control is not None and host != plan.lead:
            reached |= {CONTROL}
        if reached not in shared:
            targets = tuple(target for role in sorted(reached) for target in homes[role])
            shared[reached] = Dials(targets, tuple(dict.fromkeys(host_of(target.address) for target in targets)))
        found[host] = shared[reached]
    return found


def _roles(plan: Plan) -> Dict[str, Set[str]]:
    roles: Dict[str, Set[str]] = {host: set() for host in plan.hosts}
    for task in plan.tasks:
        roles[task.host].add(_part(task))
    return roles


def _part(task: TaskRequest) -> str:
    """Return the role of a task; a chief counts as a worker."""
    return "worker" if task.role == "chief" else task.role


def _reached(plan: Plan, role: str) -> Tuple[str, ...]:
    if role == "evaluator":
        return ("chief",)
    if plan.spec.command is not None:
        return _ANY[role]
    return (_IN_GRAPH if plan.spec.train.replication == "in-graph" else _BETWEEN_GRAPH)[role]


def _homes(plan: Plan) -> Dict[str, List[DialTarget]]:
    """Return the targets of each role: {role: targets}.

    The key ``chief`` has the chief alone.
    """
    homes: Dict[str, List[DialTarget]] = defaultdict(list)
    for task in plan.tasks:
        homes[_part(task)].append(DialTarget(task.address, task.host))
        if task.chief:
            homes["chief"].append(DialTarget(task.address, task.host))
    if plan.control is not None:
        homes[CONTROL].append(DialTarget(plan.control, plan.lead))
    return homes


_ADDRESS = "see `ssh {caller} getent ahosts {name}`, or give the task another address with the key address"
_FIREWALL = "allow TCP port {ports} from {callers}; `ssh {host} sudo nft list ruleset` shows what {host} blocks"

# For each kind of failure (launch.agent.network.doors): its meaning and its remedy.
EXPLAINED = {
    "unresolved": ("the name has no address there ({detail})", _ADDRESS),
    "loopback": ("the name means the dialling host itself ({detail}), as localhost does", _ADDRESS),
    "refused": (
        "refused although the check listened there: a firewall rejects it, or {detail} is another machine",
        _FIREWALL,
    ),
    "timed-out": ("no answer ({detail}): a firewall may drop it", _FIREWALL),
    "no-route": ("no route there ({detail})", "see `ssh {caller} ip route` and the firewall of {host}"),
    "failed": (
        "the connection failed ({detail})",
        "see the limit of open files of {caller}, and the firewall of {host}",
    ),
    "other": (
        "answered by something other than the check, such as a proxy: {detail!r}",
        "connect the hosts directly, or give the task another address with the key address",
    ),
    "wrong-host": ("answered by {detail}: the address is not that of {host}", _ADDRESS),
}


class Wall(NamedTuple):
    """Connections that fail for the same reason: from each host of ``callers`` to each address of ``ways``.

    ``detail`` belongs to the first address, for example the result of resolving its name.
    """

    kind: str
    callers: Tuple[str, ...]
    ways: Tuple[DialTarget, ...]
    detail: str

    def __str__(self) -> str:
        return f"{fold(self.callers)} → {_folded(self.ways)}"

    @property
    def ends(self) -> Tuple[str, ...]:
        """Return the hosts that should answer at the addresses."""
        return tuple(dict.fromkeys(way.host for way in self.ways))

    @property
    def suspects(self) -> Tuple[str, ...]:
        """Return the hosts to examine first.

        A name fails on the host that resolves it. Other connections fail more probably at the side with fewer hosts.
        """
        at_start = self.kind in ("unresolved", "loopback", "wrong-host") or len(self.callers) < len(self.ends)
        return self.callers if at_start else self.ends


def ways(evidence: Evidence) -> Iterator[Finding]:
    """Require that every host reaches the addresses that its tasks and its agent dial."""
    for wall in walls(evidence):
        what, mend = EXPLAINED[wall.kind]
        words = {
            "detail": wall.detail, "caller": wall.callers[0], "callers": fold(wall.callers), "host": wall.ends[0],
            "name": wall.ways[0].name, "ports": ", ".join(dict.fromkeys(str(way.port) for way in wall.ways)),
        }  # fmt: skip
        yield Finding(wall.kind, wall.suspects, f"{wall}: {what.format(**words)}", mend.format(**words))


def walls(evidence: Evidence) -> List[Wall]:
    """Return the failed connections, grouped by the kind of the failure and the calling hosts.

    A connection to a host on which our listener was not up does not count.
    """
    callers: Dict[Tuple[str, str, DialTarget], Set[str]] = defaultdict(set)
    for host, facts in evidence.facts.items():
        for failure in facts.unreached:
            if _listened(evidence, failure):
                callers[failure.kind, failure.detail, DialTarget(failure.address, failure.host)].add(host)
    alike: Dict[Tuple[str, FrozenSet[str]], List[Tuple[str, DialTarget]]] = defaultdict(list)
    for (kind, detail, way), hosts in callers.items():
        alike[kind, frozenset(hosts)].append((detail, way))
    return [
        Wall(kind, tuple(host for host in evidence.facts if host in hosts), tuple(way for _, way in found), found[0][0])
        for (kind, hosts), found in alike.items()
    ]


def _listened(evidence: Evidence, failure: Unreached) -> bool:
    """Return whether our listener was up at the address that could not be reached.

    The listener was not up where the port is taken, or the host did not take part to the end.
    """
    there = evidence.facts.get(failure.host)
    port = failure.address.rpartition(":")[2]
    return there is not None and port in there.ports and there.ports[port] is None


def _folded(ways: Sequence[DialTarget]) -> str:
    """Return ``h[1-3]:2222``."""
    names: Dict[str, List[str]] = defaultdict(list)
    for way in ways:
        name, _, port = way.address.rpartition(":")  # an IPv6 address keeps its brackets
        names[port].append(name)
    return ", ".join(f"{_fold_names(found)}:{port}" for port, found in names.items())


def _fold_names(names: Sequence[str]) -> str:
    return " ".join(names) if any(":" in name for name in names) else fold(names)
