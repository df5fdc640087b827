"""Tasks whose address the internet can reach, although the run does not allow that."""

from typing import Callable, Dict, List, Sequence

from cluster.protocol.addresses import host_of, is_public
from launch.agent.network import resolver
from launch.agent.wire.run_request import RunRequest

LOOKUP_S = 20.0

Resolve = Callable[[Sequence[str], float], Dict[str, resolver.Meaning]]


def exposed(request: RunRequest, resolve: Resolve = resolver.resolve) -> List[str]:
    """Return a line for every exposed task of the run.

    The lead resolves the names of all tasks, so that each name is looked up once and as the cluster sees it.
    """
    if request.allow_public or request.guard or request.run_plan is None:
        return []
    tasks = request.run_plan.tasks
    found = resolve([host_of(task.address) for task in tasks], LOOKUP_S)
    public = {
        name: [one for one in meaning if is_public(one)] for name, meaning in found.items() if isinstance(meaning, list)
    }
    return [
        f"{task.name}: expected an address that the internet cannot reach, found {host_of(task.address)}, "
        f"which is {public[host_of(task.address)][0]}; give it a private address, or set guard: nftables, "
        "or allow_public: true"
        for task in tasks
        if public.get(host_of(task.address))
    ]
