"""Which variables are cut into slices, so that no parameter server holds much more than the others.

A slice is a contiguous part along one axis. So a checkpoint, which holds all slices of a
variable under one name, can be read with any other number of slices.
"""

from dataclasses import dataclass
from typing import Dict, Mapping, Tuple

from cluster.measuring import Measured
from cluster.placement import assign, imbalance, loads

SMALLEST_SLICE = 256 << 10  # bytes; a slice costs a request, and below this the request costs more than the bytes
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
    """The variables that must be cut, for ``num_ps`` servers.

    Tables are cut over all servers, since their rows are asked for by all workers at once;
    so is what TensorFlow cannot send in one piece. Then the largest variable that is whole
    is cut, and the next, until the fullest server holds little more than the mean.
    """
    found = {name: cut(variables[name], num_ps) for name in variables if _must_be_cut(variables[name])}
    found = {name: each for name, each in found.items() if each.parts > 1}
    whole = sorted(set(variables) - set(found), key=lambda name: (-variables[name].bytes, name))
    for name in whole:
        each = cut(variables[name], num_ps)
        if each.parts < 2 or _fullest(variables, found, num_ps) <= _BALANCED:
            break
        found[name] = each
    return found


def cut(variable: Measured, num_ps: int) -> Cut:
    """A slice for every server, or several where they would be too large, or fewer where too small."""
    shape = variable.shape or (1,)
    axis = 0 if variable.lookups is not None or shape[0] >= num_ps else shape.index(max(shape))
    rounds = -(-variable.bytes // (LARGEST_SLICE * num_ps))
    parts = min(num_ps * max(rounds, 1), variable.bytes // SMALLEST_SLICE, shape[axis])
    return Cut(axis, max(parts, 1))


def slice_sizes(variables: Mapping[str, Measured], found: Mapping[str, Cut]) -> Dict[str, int]:
    """Bytes of every variable or slice by its name; slices of ``w`` are ``w/part_0``, ``w/part_1``, …"""
    sizes: Dict[str, int] = {}
    for name, variable in variables.items():
        if name not in found:
            sizes[name] = variable.bytes
            continue
        each = variable.bytes // variable.shape[found[name].axis]
        lengths = found[name].lengths(variable.shape)
        sizes.update({f"{name}/part_{index}": length * each for index, length in enumerate(lengths)})
    return sizes


def _must_be_cut(variable: Measured) -> bool:
    return variable.lookups is not None or variable.bytes > LARGEST_SLICE


def _fullest(variables: Mapping[str, Measured], found: Mapping[str, Cut], num_ps: int) -> float:
    sizes = slice_sizes(variables, found)
    return imbalance(loads(sizes, assign(sizes, num_ps), num_ps))
