"""The addresses of the hosts' names, names without an address, and tasks that the internet can reach.

The system's resolver has no time limit, so it runs in threads, and callers wait for a thread only up to their own
limit. Each name is resolved once, even if many targets have it.
"""

import ipaddress
import json
import socket
import threading
import time
from collections import deque
from typing import Callable, Deque, Dict, List, Sequence, Union

from cluster.protocol import addresses
from cluster.protocol.addresses import host_of
from launch.agent.wire.run_request import RunRequest

AT_ONCE = 64
Meaning = Union[List[str], str]  # addresses, or the reason why the name has none


def resolve(names: Sequence[str], timeout_s: float) -> Dict[str, Meaning]:
    """Return {name: its addresses, in the order in which to try them, or the reason why it has none}."""
    waiting: Deque[str] = deque(dict.fromkeys(names))
    found: Dict[str, Meaning] = {}

    def work() -> None:
        while True:
            try:
                name = waiting.popleft()
            except IndexError:  # without a check before: another thread may take the last one
                return
            found[name] = _addresses(name)

    until = time.monotonic() + timeout_s
    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(AT_ONCE, len(waiting)))]
    wanted = list(waiting)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return {name: found.get(name, f"no answer from the resolver within {timeout_s:.0f} s") for name in wanted}


def _addresses(name: str) -> Meaning:
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        return getattr(error, "strerror", None) or str(error)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def is_loopback(address: str) -> bool:
    """Return whether an IP address is a loopback address, which means the caller's own host."""
    return ipaddress.ip_address(address.split("%")[0]).is_loopback


LOOKUP_S = 20.0
LOOKUPS, PAUSE_S = 3, 1.0  # of a name without an address: a name server may be busy

Resolve = Callable[[Sequence[str], float], Dict[str, Meaning]]


def exposed(request: RunRequest, resolve: Resolve = resolve) -> List[str]:
    """Return a line about each task that the internet can reach, unless the request allows such tasks.

    The agent on the chief's host resolves the names of all tasks, so that each is resolved once, inside the cluster.
    """
    if request.run_plan is None or addresses.may_be_public(request.guard, request.allow_public):
        return []
    hosts = {task.name: host_of(task.address) for task in request.run_plan.tasks}
    found = addresses.exposed(hosts, resolve(list(hosts.values()), LOOKUP_S))
    return [
        f"{task}: expected {addresses.EXPECTED}, found {hosts[task]}, which is {public[0]}; {addresses.ADVICE}"
        for task, public in found.items()
    ]


def unresolved(
    request: RunRequest, resolve: Resolve = resolve, pause: Callable[[float], None] = time.sleep
) -> List[str]:
    """Return a line about each name that this host's agent or tasks connect to, but that has no address here."""
    names = _dialled(request)
    unknown: Dict[str, Meaning] = dict.fromkeys(names, "")
    until = time.monotonic() + LOOKUP_S  # of all turns: the start of an agent has a bound
    for turn in range(LOOKUPS):
        if turn and unknown:
            pause(PAUSE_S)
        left_s = until - time.monotonic()
        if not unknown or left_s <= 0:
            break
        found = resolve(list(unknown), left_s)
        unknown = {name: meaning for name, meaning in found.items() if isinstance(meaning, str)}
    return [
        f"the name {name} of {names[name]} has no address on this host ({why}); see `getent ahosts {name}` here, or "
        "give the task another address with the key address"
        for name, why in unknown.items()
    ]


def _dialled(request: RunRequest) -> Dict[str, str]:
    """Return the names that this host will certainly dial, each with the task, or the lead, whose name it is.

    A program may dial further tasks; a task in a container may know other names than its host.
    """
    cluster = json.loads(request.cluster)
    trainers = ("worker", "chief")
    reached = {
        "ps": trainers,
        "evaluator": ("chief",),
        **dict.fromkeys(trainers, ("ps",) if cluster.get("ps") else trainers),
    }
    names = {}
    if request.lead.address is not None:
        names[host_of(request.lead.address)] = f"the lead on {request.lead.host}"
    is_alone = sum(map(len, cluster.values())) == 1  # a single task has nobody to dial: its name may be one of SSH
    dialling = () if request.container or is_alone else request.tasks
    own = [role for task in dialling for role in reached[task.role]]
    for role in dict.fromkeys(own):
        for index, address in enumerate(cluster.get(role, ())):
            names.setdefault(host_of(address), f"{role}:{index}")
    return names
