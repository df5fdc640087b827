"""What no synchronous step can be faster than, from the network's rate alone.

Every worker reads M bytes of variables and gives M bytes of gradients in a step; the n workers' are held by k
parameter servers in equal parts. A network card carries B bytes a second each way, both ways at once.
"""

_ETHERNET, _IP, _TCP, _TIMESTAMPS = 14, 20, 20, 12  # bytes of each header of a packet


def tcp_share(mtu: int = 1500) -> float:
    """The part of a network's rate that is left for what TCP carries; an ``mtu`` counts all headers but Ethernet's."""
    return (mtu - _IP - _TCP - _TIMESTAMPS) / (mtu + _ETHERNET)


def bytes_per_s(mbit: float) -> float:
    """What TCP carries each way over a network card of ``mbit`` Mbit/s."""
    return mbit * 1e6 / 8 * tcp_share()


def one_way_s(model_bytes: float, workers: int, ps: int, rate: float) -> float:
    """Seconds until every worker has all variables, or has given all gradients; each task on a host of its own."""
    return max(model_bytes / rate, workers * model_bytes / (ps * rate))


def overlapped_s(model_bytes: float, workers: int, ps: int, rate: float) -> float:
    """Seconds of a step that reads while it gives: both ways of every network card are busy all the time."""
    return one_way_s(model_bytes, workers, ps, rate)


def serial_s(model_bytes: float, workers: int, ps: int, rate: float) -> float:
    """Seconds of a step that first reads everything, then gives everything: half of every network card is idle."""
    return 2 * one_way_s(model_bytes, workers, ps, rate)


def colocated_s(model_bytes: float, hosts: int, rate: float) -> float:
    """Seconds of a step of ``hosts`` hosts with a worker and a ps each, which is also a ring all-reduce's bound.

    A card receives what its worker reads from the others and what the others give to its ps, so reading and giving
    at once gains nothing.
    """
    return 2 * (hosts - 1) * model_bytes / (hosts * rate)
