"""A model of a step's network traffic, the least duration of that step, and the network card that limits it.

In each step, a worker pulls every trained variable once; of a table, only the rows that it looks up. The worker then
pushes gradients of the same size once, for any number of towers. Every host has one card, which carries both directions
at once. If pulls and pushes overlap, a step is as slow as the card with the most bytes in each direction. Otherwise the
push follows the pull, and each is as slow as the card with the most bytes in its busier direction. Traffic within one
host does not count.
"""

from collections import Counter, defaultdict
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from launch.plan.outlook import Balanced, Bound, Network, TaskTraffic


class NetworkEnd(NamedTuple):
    """A task and its host, as one end of the traffic between hosts."""

    task: str
    host: str


def traffic(workers: Sequence[NetworkEnd], servers: Sequence[NetworkEnd], pulled: Sequence[int]) -> Dict[str, int]:
    """Return the bytes that leave or reach each task in one phase of a step, pull or push: {task: bytes}.

    In the other phase, the same bytes move in the other direction. Bytes within a host do not count.

    Args:
      pulled: the bytes that a worker reads from each of ``servers``.
    """
    asking = Counter(worker.host for worker in workers)
    at_home: Dict[str, int] = defaultdict(int)
    for server, size in zip(servers, pulled):
        at_home[server.host] += size
    moved = {server.task: size * (len(workers) - asking[server.host]) for server, size in zip(servers, pulled)}
    moved.update({worker.task: sum(pulled) - at_home[worker.host] for worker in workers})
    return moved


def bound(
    workers: Sequence[NetworkEnd], servers: Sequence[NetworkEnd], moved: Mapping[str, int], overlapped: bool
) -> Optional[Bound]:
    """Return the network card that limits a step; None if no bytes leave a host.

    Args:
      moved: the result of ``traffic``.
      overlapped: whether pulls and pushes run at the same time.
    """
    cards: Dict[Tuple[str, str], List[str]] = defaultdict(list)
    for end in servers:  # in a pull, bytes leave the servers' hosts and reach the workers' hosts
        cards[end.host, "both" if overlapped else "out"].append(end.task)
    for end in workers:
        cards[end.host, "both" if overlapped else "in"].append(end.task)
    found = [Bound(host, tasks, way, sum(map(moved.__getitem__, tasks))) for (host, way), tasks in cards.items()]
    fullest = max(found, key=lambda each: each.bytes)
    return fullest if fullest.bytes else None


def seconds(way_bytes: int, nic_gbps: float, overlapped: bool) -> float:
    """Return the seconds that a card needs to transfer ``way_bytes`` in each direction.

    With ``overlapped``, both transfers run at the same time; otherwise one follows the other.
    """
    return (1 if overlapped else 2) * way_bytes / (nic_gbps * 1e9 / 8)


def share_of_a_ps(workers: Sequence[NetworkEnd]) -> float:
    """Return the share of variables at which a ps alone on its host has as much traffic as the busiest worker host."""
    return max(Counter(worker.host for worker in workers).values()) / len(workers)


def describe(
    workers: Sequence[NetworkEnd],
    servers: Sequence[NetworkEnd],
    pulled: Sequence[int],
    fewest: Mapping[str, int],
    nic_gbps: float,
    overlapped: bool,
) -> Network:
    """Return the object ``network`` of ``plan --json``.

    Args:
      fewest: ``ps`` is the smallest number of ps, each on its own host, beyond which more ps do not shorten a step.
        ``pulled`` is the number of bytes that a worker reads from the fullest of these ps.
      overlapped: whether pulls and pushes run at the same time.
    """
    moved = traffic(workers, servers, pulled)
    waited = bound(workers, servers, moved, overlapped)
    at_workers = round(share_of_a_ps(workers) * len(workers)) * sum(pulled)
    balanced = max(at_workers, len(workers) * fewest["pulled"])
    return Network(
        nic_gbps,
        seconds(waited.bytes if waited else 0, nic_gbps, overlapped),
        waited,
        Balanced(fewest["ps"], seconds(balanced, nic_gbps, overlapped)),
        [TaskTraffic(name, size, size) for name, size in moved.items()],
    )
