"""What a synchronous step moves over the network, and how long that takes at least.

A worker pulls every trained variable once a step and pushes a gradient of the same size
once, whatever the number of its towers. Pull and push come one after the other, each as
slow as the fullest network card; cards carry both directions at once. What stays on a
host does not count.
"""

from collections import defaultdict
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence

Bytes = Mapping[str, int]


class End(NamedTuple):
    """A task as the network sees it."""

    task: str
    host: str


def traffic(workers: Sequence[End], servers: Sequence[End], pulled: Sequence[int]) -> Dict[str, int]:
    """Bytes that leave or reach each task in one phase of a step: {task: bytes}.

    Args:
      pulled: bytes of trained variables on each of ``servers``.

    The same bytes go the other way in the other phase.
    """
    moved: Dict[str, int] = {end.task: 0 for end in [*servers, *workers]}
    for server, size in zip(servers, pulled):
        for worker in workers:
            if worker.host != server.host:
                moved[server.task] += size
                moved[worker.task] += size
    return moved


def step_seconds(workers: Sequence[End], servers: Sequence[End], pulled: Sequence[int], nic_gbps: float) -> float:
    """Network time of a step at least: pull, then push, each bound by the fullest card's fuller direction."""
    moved = traffic(workers, servers, pulled)
    out: Dict[str, int] = defaultdict(int)
    into: Dict[str, int] = defaultdict(int)
    for server in servers:  # a pull: out of the servers' hosts, into the workers'
        out[server.host] += moved[server.task]
    for worker in workers:
        into[worker.host] += moved[worker.task]
    fullest = max([*out.values(), *into.values()], default=0)
    return 2 * fullest / (nic_gbps * 1e9 / 8)


def describe(workers: Sequence[End], servers: Sequence[End], pulled: Sequence[int], nic_gbps: float) -> Dict[str, Any]:
    """``network`` of ``plan --json``."""
    moved = traffic(workers, servers, pulled)
    tasks: List[Dict[str, Any]] = [{"task": name, "bytes_in": size, "bytes_out": size} for name, size in moved.items()]
    seconds = step_seconds(workers, servers, pulled, nic_gbps)
    return {"nic_gbps": nic_gbps, "seconds_per_step": seconds, "tasks": tasks}
