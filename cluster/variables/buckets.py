"""Pack variables into buckets, which travel together, in one order.

Buckets are the pieces in which a step goes over the network. A large variable has been cut into slices
(``cluster.variables.partition``), each a bucket of its own. Small variables that are on the same server share a
bucket, as every request costs time whatever its size. Every worker must find the same buckets in the same order, so
buckets follow from the variables alone.
"""

from dataclasses import dataclass
from typing import Dict, List, Mapping, Sequence, Tuple

ALONE = 256 << 10  # bytes; from here on to put variables together, and take them apart, takes longer than a request


@dataclass(frozen=True)
class Bucket:
    """Variables, or slices of some, on one server; ``place`` is its turn among that server's, from 0."""

    server: int
    place: int
    names: Tuple[str, ...]

    @property
    def name(self) -> str:
        """``bucket_2_of_ps_0``"""
        return f"bucket_{self.place}_of_ps_{self.server}"


def make_buckets(
    names: Sequence[str], sizes: Mapping[str, int], servers: Mapping[str, int], piece: int
) -> List[Bucket]:
    """Return buckets of about ``piece`` bytes, those of each server in the order in which they are complete.

    Args:
      names: of variables or slices, in the order in which their gradients become known.
      sizes: bytes of each.
      servers: the index of each one's server.
    """
    full: Dict[int, List[List[str]]] = {server: [] for server in sorted(set(servers.values()))}
    filling: Dict[int, List[str]] = {server: [] for server in full}
    for name in names:
        server = servers[name]
        if sizes[name] >= ALONE:
            full[server].append([name])
            continue
        if filling[server] and sum(sizes[each] for each in filling[server]) + sizes[name] > piece:
            full[server].append(filling[server])
            filling[server] = []
        filling[server].append(name)
    for server, rest in filling.items():
        full[server] += [rest] if rest else []
    return [
        Bucket(server, place, tuple(together))
        for server, of_server in full.items()
        for place, together in enumerate(of_server)
    ]
