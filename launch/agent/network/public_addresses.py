"""Tasks whose address the internet can reach, although the run does not allow that."""

from typing import Callable, Dict, List, Sequence

from cluster.protocol import addresses
from cluster.protocol.addresses import host_of
from launch.agent.network import resolver
from launch.agent.wire.run_request import RunRequest

LOOKUP_S = 20.0

Resolve = Callable[[Sequence[str], float], Dict[str, resolver.Meaning]]


def exposed(request: RunRequest, resolve: Resolve = resolver.resolve) -> List[str]:
    """Return a line for every exposed task of the run.

    The lead resolves the names of all tasks, so that each name is looked up once and as the cluster sees it.
    """
    if request.run_plan is None or addresses.may_be_public(request.guard, request.allow_public):
        return []
    hosts = {task.name: host_of(task.address) for task in request.run_plan.tasks}
    found = addresses.exposed(hosts, resolve(list(hosts.values()), LOOKUP_S))
    return [
        f"{task}: expected {addresses.EXPECTED}, found {hosts[task]}, which is {public[0]}; {addresses.ADVICE}"
        for task, public in found.items()
    ]
