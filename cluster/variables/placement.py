"""Assign each variable to a parameter server by bytes, largest first; large variables are cut into slices.

TensorFlow's own ``replica_device_setter`` assigns variables in turn. So one server may hold most of the bytes, and
every step waits for that server. Here the worker's graph is built before variables are placed, so all sizes are known.

A slice is a contiguous part along one axis. A checkpoint holds all slices of a variable under one name, so a run with
another number of slices can read it. Slices are small because they are sent one after the other. While the second slice
is on its way to its server, the first is on its way back (``cluster.steps.overlapped_sync``).
``cluster.variables.partition_count`` chooses the number of slices.
"""

import heapq
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional

from cluster.runtime.tf_compat import tf
from cluster.variables.profile import Shape, VariableProfile, elements


def assign(sizes: Mapping[str, int], num_ps: int) -> Dict[str, int]:
    """Place variables on parameter servers so that the fullest server holds not much more than the others.

    The largest variable that has no server yet goes to the server that holds least (longest processing time first;
    R. L. Graham, "Bounds on Multiprocessing Timing Anomalies", 1969: at most 4/3 of the best possible). Variables of
    equal size go in the order of their names. Among servers with equal loads, the lowest index is chosen. So every
    worker finds the same placement.

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
    """Return the bytes of the fullest server divided by the mean of all servers.

    Args:
      held: the bytes that each server holds.

    Returns:
      1.0 where all servers hold the same, or nothing.
    """
    return max(held) * len(held) / sum(held) if sum(held) else 1.0


def variable_bytes(op: Any) -> int:
    """Return the bytes of the value of the variable that ``op`` declares; 0 if its shape is unknown.

    The value's type and shape are attributes of the operation. The *output* of a resource variable is a scalar handle,
    so a measurement of outputs would miss its bytes.
    """
    shape = tf.TensorShape(op.get_attr("shape")).num_elements() or 0
    size: int = shape * tf.as_dtype(op.get_attr("dtype")).size
    return size


class Placement:
    """A strategy for ``tf.train.replica_device_setter``, which places variables on ``num_ps`` servers.

    The variables in ``sizes``, bytes by name, are on the servers that ``assign`` returns. Any other variable that
    TensorFlow asks about goes to the server that holds least so far.
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
        """Return the bytes that each server holds."""
        return bytes_per_server(self.sizes, self.servers, self.num_ps)


def device_setter(placement: Placement, worker_device: str) -> Callable[[Any], str]:
    """Return a device function: variables on their server's CPU, everything else on ``worker_device``.

    Use one function per tower instead of nesting ``tf.device``: TensorFlow would merge an inner ``/device:GPU:0`` into
    a variable's device too, and request a GPU on a parameter server.
    """
    setter: Callable[[Any], str] = tf.train.replica_device_setter(
        ps_tasks=placement.num_ps, ps_device="/job:ps/device:CPU:0", worker_device=worker_device, ps_strategy=placement
    )
    return setter


SMALLEST_SLICE = 64 << 10  # bytes; a slice costs a request, and below this size the request costs more than the bytes
CHOICES = (4, 16, 64)  # far apart, so that the same cluster chooses the same number again; more make a large graph
FEWEST_SLICES, MOST_SLICES = CHOICES[0], CHOICES[-1]
SLICES = 64  # where no chief chooses
LARGEST_SLICE = 1 << 30  # bytes; TensorFlow cannot send 2 GiB in one piece
_BALANCED = 1.02  # bytes of the fullest server divided by the mean


@dataclass(frozen=True)
class Cut:
    """A variable in ``parts`` slices along ``axis``.

    If ``parts`` does not divide the length of the axis, the first slices are longer by one.
    """

    axis: int
    parts: int

    def lengths(self, shape: Shape) -> Shape:
        """Return the length of each slice along the axis, for a variable of ``shape``."""
        each, longer = divmod(shape[self.axis], self.parts)
        return tuple(each + (index < longer) for index in range(self.parts))


def overlap_pays(size: int, num_ps: int) -> bool:
    """Return whether overlap pays: whether sending while other values arrive saves more time than the requests cost.

    ``size`` is the number of bytes that a step sends whole.
    """
    return size > num_ps * FEWEST_SLICES * SMALLEST_SLICE


def cuts(variables: Mapping[str, VariableProfile], num_ps: int, slices: int = SLICES) -> Dict[str, Cut]:
    """Return the variables that are cut, for ``num_ps`` servers.

    Variables that are sent whole fill ``slices`` slices on each server. A variable that may not be cut stays whole, and
    so does a variable that no step sends. Tables are cut over all servers, because all workers request their rows at
    the same time. A variable that TensorFlow cannot send in one piece is cut over all servers, too. Variables that
    every step sends whole are cut into pieces of ``piece_bytes``. Then the function cuts the largest variable that is
    still in one piece, and the next, until the fullest server holds little more than the mean. If that server still
    holds more, the function starts again with smaller pieces.
    """
    found = _cuts(variables, num_ps, slices)
    while slices < MOST_SLICES and _fullest(variables, found, num_ps) > _BALANCED:
        slices *= 2
        found = _cuts(variables, num_ps, slices)
    return found


def _cuts(variables: Mapping[str, VariableProfile], num_ps: int, slices: int) -> Dict[str, Cut]:
    piece = piece_bytes(variables, num_ps, slices)
    may_be_cut = {name: each for name, each in variables.items() if each.may_be_cut and each.travels}
    found = {name: _in_pieces(each, piece) for name, each in may_be_cut.items() if each.is_dense}
    found.update({name: cut(each, num_ps) for name, each in may_be_cut.items() if _must_be_cut(each)})
    found = {name: each for name, each in found.items() if each.parts > 1}
    whole = sorted(set(may_be_cut) - set(found), key=lambda name: (-variables[name].bytes, name))
    for name in whole:
        each = cut(variables[name], num_ps)
        if each.parts < 2 or _fullest(variables, found, num_ps) <= _BALANCED:
            break
        found[name] = each
    return found


def piece_bytes(variables: Mapping[str, VariableProfile], num_ps: int, slices: int = SLICES) -> int:
    """Return the bytes that a slice should have, for the variables that every step sends whole."""
    return max(SMALLEST_SLICE, -(-dense_bytes(variables) // (num_ps * slices)))


def dense_bytes(variables: Mapping[str, VariableProfile]) -> int:
    """Return the bytes of all variables that every step sends whole."""
    return sum(each.bytes for each in variables.values() if each.is_dense)


def cut(variable: VariableProfile, num_ps: int) -> Cut:
    """Return a cut of ``variable`` into one slice for each of ``num_ps`` servers.

    If a slice would exceed ``LARGEST_SLICE``, each server has more slices. If slices would be smaller than
    ``SMALLEST_SLICE``, the variable has fewer slices than servers.
    """
    rounds = -(-variable.bytes // (LARGEST_SLICE * num_ps))
    return _cut(variable, min(num_ps * max(rounds, 1), variable.bytes // SMALLEST_SLICE), num_ps)


def _in_pieces(variable: VariableProfile, piece: int) -> Cut:
    parts = -(-variable.bytes // piece)
    return _cut(variable, parts, parts)


def _cut(variable: VariableProfile, parts: int, enough: int) -> Cut:
    """Cut a variable into at most ``parts`` slices.

    The slices are along the first axis if its length is at least ``enough``, or if a step takes only rows of the
    variable. Otherwise the slices are along the longest axis.
    """
    shape = variable.shape or (1,)
    axis = 0 if variable.lookups is not None or shape[0] >= enough else shape.index(max(shape))
    return Cut(axis, max(min(parts, shape[axis]), 1))


class Piece(NamedTuple):
    """A variable on a server, or a slice of it: ``offset`` is the beginning of the piece in the whole variable."""

    name: str
    shape: Shape
    offset: Shape


def pieces_of(name: str, shape: Shape, cut_into: Optional[Cut]) -> Iterator[Piece]:
    """Yield the pieces of a variable in order; slices of ``w`` are ``w/part_0``, ``w/part_1``, …"""
    if cut_into is None:
        yield Piece(name, shape, (0,) * len(shape))
        return
    axis, begin = cut_into.axis, 0
    for index, length in enumerate(cut_into.lengths(shape)):
        offset = tuple(begin if at == axis else 0 for at in range(len(shape)))
        yield Piece(f"{name}/part_{index}", (*shape[:axis], length, *shape[axis + 1 :]), offset)
        begin += length


def slice_sizes(variables: Mapping[str, VariableProfile], found: Mapping[str, Cut]) -> Dict[str, int]:
    """Return the bytes of every piece by name: of each slice of a variable in ``found``, or of the whole variable."""
    return {
        piece.name: variable.item_bytes * elements(piece.shape)
        for name, variable in variables.items()
        for piece in pieces_of(name, variable.shape, found.get(name))
    }


def _must_be_cut(variable: VariableProfile) -> bool:
    return variable.lookups is not None or variable.bytes > LARGEST_SLICE


def _fullest(variables: Mapping[str, VariableProfile], found: Mapping[str, Cut], num_ps: int) -> float:
    sizes = slice_sizes(variables, found)
    return imbalance(bytes_per_server(sizes, assign(sizes, num_ps), num_ps))
