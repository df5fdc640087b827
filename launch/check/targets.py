"""The addresses that each host has to reach.

TensorFlow's tasks connect both ways: a worker dials the ps for variables, and a ps dials the
worker for its gradients, since the task that needs a tensor fetches it. With a job, workers
reach no other worker, and the evaluator fetches checkpoints from the chief. A program under
``command:`` may open sessions that reach every task, so every way must be open. The agents
of all hosts dial the lead's.
"""

from collections import defaultdict
from typing import Dict, FrozenSet, List, Mapping, Set, Tuple

from launch.agent.network.target import Target
from launch.agent.wire.run_request import TaskRequest
from launch.plan.plan import Plan

CONTROL = "control"  # the lead's agent, among the roles
_Ways = Mapping[str, Tuple[str, ...]]
_BETWEEN_GRAPH: _Ways = {"worker": ("ps",), "ps": ("worker",)}
_IN_GRAPH: _Ways = {"worker": ("ps", "worker"), "ps": ("worker",)}
_ANY: _Ways = {"worker": ("ps", "worker"), "ps": ("ps", "worker")}


def dials(plan: Plan) -> Dict[str, Tuple[Target, ...]]:
    """Return the targets that each host dials.

    Hosts with tasks of the same roles share one tuple, so the result stays small.
    """
    homes = _homes(plan)
    shared: Dict[FrozenSet[str], Tuple[Target, ...]] = {}
    found = {}
    for host, roles in _roles(plan).items():
        reached = frozenset(reached for role in roles for reached in _reached(plan, role))
        if plan.control is not None and host != plan.lead:
            reached |= {CONTROL}
        if reached not in shared:
            shared[reached] = tuple(target for role in sorted(reached) for target in homes[role])
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


def _homes(plan: Plan) -> Dict[str, List[Target]]:
    """Return the targets of each role: {role: targets}.

    ``chief`` has the one task that is the chief.
    """
    homes: Dict[str, List[Target]] = defaultdict(list)
    for task in plan.tasks:
        homes[_part(task)].append(Target(task.address, task.host))
        if task.chief:
            homes["chief"].append(Target(task.address, task.host))
    if plan.control is not None:
        homes[CONTROL].append(Target(plan.control, plan.lead))
    return homes
