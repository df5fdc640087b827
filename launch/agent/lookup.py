"""The addresses behind the cluster's names, as this host sees them, and what is wrong with them."""

import socket
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, Callable, Dict, List, Mapping, Sequence

from cluster.addresses import host_of, is_public

LOOKUP_S = 20.0
AT_ONCE = 32  # names asked for side by side

LookUp = Callable[[str], List[str]]


def look_up(name: str) -> List[str]:
    """The IP addresses of one name. Raises OSError."""
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]).split("%")[0] for *_, address in found))


def resolve(names: Sequence[str], look_up: LookUp = look_up, timeout_s: float = LOOKUP_S) -> Dict[str, List[str]]:
    """{name: IP addresses}; none for a name that nobody knows, or nobody has answered for in time."""
    pool = ThreadPoolExecutor(AT_ONCE)
    asked = {name: pool.submit(look_up, name) for name in dict.fromkeys(names)}
    answered, late = wait(asked.values(), timeout_s)
    for future in late:
        future.cancel()
    pool.shutdown(wait=False)
    return {name: [] if one not in answered or one.exception() else one.result() for name, one in asked.items()}


def exposed(plan: Mapping[str, Any], look_up: LookUp = look_up) -> List[str]:
    """A line for every task of the run whose address the internet can reach, where nobody said that it may.

    The lead asks for all, so that each name is looked up once and as the cluster sees it.
    """
    if plan.get("allow_public", True) or plan.get("guard") or "run_plan" not in plan:
        return []
    tasks = plan["run_plan"]["tasks"]
    found = resolve([host_of(task["address"]) for task in tasks], look_up)
    public = {name: [one for one in addresses if is_public(one)] for name, addresses in found.items()}
    return [
        f"{task['name']}: expected an address that the internet cannot reach, found {host_of(task['address'])}, "
        f"which is {public[host_of(task['address'])][0]}; give it a private address, or set guard: nftables, "
        "or allow_public: true"
        for task in tasks
        if public[host_of(task["address"])]
    ]
