"""Which variables are cut into slices, so that every parameter server holds as much as the others, in small pieces.

A slice is a contiguous part along one axis. So a checkpoint, which holds all slices of a
variable under one name, can be read with any other number of slices.

Slices are small because they travel one after the other: while the second is on its way to its
server, the first is on its way back (``cluster.exchange``). With n slices on a server, a step
takes the time of sending everything once, and 1/n of it more for the last slice's way back.
"""

from dataclasses import dataclass
from typing import Dict, Mapping, Tuple

from cluster.measuring import Measured
from cluster.placement import assign, imbalance, loads

SMALLEST_SLICE = 64 << 10  # bytes; a slice costs a request, and below this the request costs more than the bytes
SLICES_PER_SERVER = 64  # of the bytes that a server holds
LARGEST_SLICE = 1 << 30  # bytes; TensorFlow cannot send 2 GiB in one piece
_BALANCED = 1.02  # bytes of the fullest server over the mean


@dataclass(frozen=True)
class Cut:
    """A variable in ``parts`` slices along ``axis``; the first ones are longer by one if it does not divide."""

    axis: int
    parts: int

    def lengths(self, shape: Tuple[int, ...]) -> Tuple[int, ...]:
        """How long each slice is along the axis."""
        each, longer = divmod(shape[self.axis], self.parts)
        return tuple(each + (index < longer) for index in range(self.parts))


def cuts(variables: Mapping[str, Measured], num_ps: int) -> Dict[str, Cut]:
    """The variables that are cut, for ``num_ps`` servers.

    Tables are cut over all servers, since their rows are asked for by all workers at once;
    so is what TensorFlow cannot send in one piece. What travels whole in every step is cut into
    pieces of ``piece_bytes``. Then the largest variable that is whole is cut, and the next, until
    the fullest server holds little more than the mean.
    """
    piece = piece_bytes(variables, num_ps)
    found = {name: _in_pieces(each, piece) for name, each in variables.items() if each.is_dense}
    found.update({name: cut(each, num_ps) for name, each in variables.items() if _must_be_cut(each)})
    found = {name: each for name, each in found.items() if each.parts > 1}
    whole = sorted(set(variables) - set(found), key=lambda name: (-variables[name].bytes, name))
    for name in whole:
        each = cut(variables[name], num_ps)
        if each.parts < 2 or _fullest(variables, found, num_ps) <= _BALANCED:
            break
        found[name] = each
    return found


def piece_bytes(variables: Mapping[str, Measured], num_ps: int) -> int:
    """How large a slice should be of those variables that travel whole in every step."""
    total = sum(each.bytes for each in variables.values() if each.is_dense)
    return max(SMALLEST_SLICE, -(-total // (num_ps * SLICES_PER_SERVER)))


def cut(variable: Measured, num_ps: int) -> Cut:
    """A slice for every server, or several where they would be too large, or fewer where too small."""
    rounds = -(-variable.bytes // (LARGEST_SLICE * num_ps))
    return _cut(variable, min(num_ps * max(rounds, 1), variable.bytes // SMALLEST_SLICE), num_ps)


def _in_pieces(variable: Measured, piece: int) -> Cut:
    parts = -(-variable.bytes // piece)
    return _cut(variable, parts, parts)


def _cut(variable: Measured, parts: int, enough: int) -> Cut:
    """At most so many parts along the first axis if that is long ``enough``, else along the longest."""
    shape = variable.shape or (1,)
    axis = 0 if variable.lookups is not None or shape[0] >= enough else shape.index(max(shape))
    return Cut(axis, max(min(parts, shape[axis]), 1))


def slice_shapes(variables: Mapping[str, Measured], found: Mapping[str, Cut]) -> Dict[str, Tuple[int, ...]]:
    """The shape of every variable or slice by its name; slices of ``w`` are ``w/part_0``, ``w/part_1``, …"""
    shapes: Dict[str, Tuple[int, ...]] = {}
    for name, variable in variables.items():
        if name not in found:
            shapes[name] = variable.shape
            continue
        axis = found[name].axis
        for index, length in enumerate(found[name].lengths(variable.shape)):
            shapes[f"{name}/part_{index}"] = (*variable.shape[:axis], length, *variable.shape[axis + 1 :])
    return shapes


def slice_sizes(variables: Mapping[str, Measured], found: Mapping[str, Cut]) -> Dict[str, int]:
    """Bytes of every variable or slice by its name."""
    sizes: Dict[str, int] = {}
    for name, variable in variables.items():
        shapes = slice_shapes({name: variable}, found)
        sizes.update({part: Measured(shape, variable.item_bytes).bytes for part, shape in shapes.items()})
    return sizes


def _must_be_cut(variable: Measured) -> bool:
    return variable.lookups is not None or variable.bytes > LARGEST_SLICE


def _fullest(variables: Mapping[str, Measured], found: Mapping[str, Cut], num_ps: int) -> float:
    sizes = slice_sizes(variables, found)
    return imbalance(loads(sizes, assign(sizes, num_ps), num_ps))
