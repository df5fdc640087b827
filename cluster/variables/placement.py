"""Assign each variable to a parameter server: by bytes, largest first.

TensorFlow's own ``replica_device_setter`` deals variables out in turn. So one server may hold most of the bytes, and
every step waits for that server. Here the worker's graph has been built before variables are placed, so all sizes
are known.
"""

import heapq
from typing import Any, Callable, Dict, List, Mapping, Optional

from cluster.runtime.tf_compat import tf


def assign(sizes: Mapping[str, int], num_ps: int) -> Dict[str, int]:
    """Place variables on parameter servers so that the fullest one holds little.

    The largest variable that is left goes to the server that holds least (longest
    processing time first; R. L. Graham, "Bounds on Multiprocessing Timing Anomalies",
    1969: at most 4/3 of the best possible). Equal sizes go in the order of their names
    and equal loads to the lowest index, so every worker finds the same placement.

    Args:
      sizes: bytes of each variable by its name.
      num_ps: number of parameter servers, at least 1.

    Returns:
      The index of the server of each variable.
    """
    servers = [(0, index) for index in range(num_ps)]
    placement = {}
    for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
        load, placement[name] = servers[0]
        heapq.heapreplace(servers, (load + sizes[name], placement[name]))
    return placement


def bytes_per_server(sizes: Mapping[str, int], placement: Mapping[str, int], num_ps: int) -> List[int]:
    """Return the bytes that each of the ``num_ps`` servers holds under ``placement``."""
    held = [0] * num_ps
    for name, index in placement.items():
        held[index] += sizes[name]
    return held


def imbalance(held: List[int]) -> float:
    """Return bytes of the fullest server over the mean; 1.0 is perfect, and for no bytes at all."""
    return max(held) * len(held) / sum(held) if sum(held) else 1.0


def variable_bytes(op: Any) -> int:
    """Return bytes of the value that a variable's operation holds; 0 where its shape is not known.

    The value's type and shape are attributes of the operation. A resource variable's
    *output* is a scalar handle, so measuring outputs would count it as nothing.
    """
    shape = tf.TensorShape(op.get_attr("shape")).num_elements() or 0
    size: int = shape * tf.as_dtype(op.get_attr("dtype")).size
    return size


class Placement:
    """A strategy for ``tf.train.replica_device_setter``: variables by name, others by load.

    A variable whose size was not known before, and that is not colocated with another, goes to the server that holds
    least so far.
    """

    def __init__(self, num_ps: int, sizes: Optional[Mapping[str, int]] = None):
        self.num_ps = num_ps
        self.sizes: Dict[str, int] = dict(sizes or {})
        self.servers = assign(self.sizes, num_ps)

    def __call__(self, op: Any) -> int:
        if op.name not in self.servers:
            held = self.bytes_per_server()
            self.servers[op.name] = held.index(min(held))
            self.sizes[op.name] = variable_bytes(op)
        return self.servers[op.name]

    def bytes_per_server(self) -> List[int]:
        """Return bytes on each server."""
        return bytes_per_server(self.sizes, self.servers, self.num_ps)


def device_setter(placement: Placement, worker_device: str) -> Callable[[Any], str]:
    """Put variables on their server's CPU and everything else on ``worker_device``.

    Use one per tower rather than nesting ``tf.device``: an inner ``/device:GPU:0`` would
    be merged into a variable's device too, and ask a parameter server for a GPU.
    """
    setter: Callable[[Any], str] = tf.train.replica_device_setter(
        ps_tasks=placement.num_ps, ps_device="/job:ps/device:CPU:0", worker_device=worker_device, ps_strategy=placement
    )
    return setter
