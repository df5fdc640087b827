"""The layout of a model's variables: the pieces on the servers, the buckets in which they travel, and the saved pieces.

A piece is a variable, whole or a slice. A checkpoint knows a piece under another name, or as a part of a tensor.

Buckets are the pieces in which a step goes over the network. A large variable has been cut into slices
(``cluster.variables.placement``), each a bucket of its own. Small variables that are on the same server share a
bucket, as every request costs time whatever its size. Every worker must find the same buckets in the same order, so
buckets follow from the variables alone.
"""

import re
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple

from cluster.variables.placement import SLICES, Piece, cuts, piece_bytes, pieces_of, slice_sizes
from cluster.variables.profile import Shape, VariableProfile, elements


@dataclass(frozen=True)
class Saved:
    """A variable and its place in a checkpoint: a tensor, or a slice of one.

    The tensor is ``name`` of ``full_shape``. ``offset`` is where the variable begins in the whole.
    """

    name: str
    variable: Any
    full_shape: Shape
    offset: Shape

    @property
    def shape(self) -> Shape:
        """Return the variable's own shape."""
        return tuple(self.variable.shape.as_list())

    @property
    def dtype(self) -> Any:
        """Return the type of the variable's elements, for a reference and for a resource variable."""
        return self.variable.dtype.base_dtype

    @property
    def bytes(self) -> int:
        """Return its size in memory."""
        return elements(self.shape) * int(self.dtype.size)

    def spec(self, begin: Shape, size: Shape) -> str:
        """Return what TensorFlow calls a part of this variable: "100 16 20,10:0,16"; "" for the whole tensor."""
        if size == self.full_shape:
            return ""
        begins = (offset + first for offset, first in zip(self.offset, begin))
        ranges = ":".join(f"{first},{length}" for first, length in zip(begins, size))
        return " ".join(map(str, self.full_shape)) + " " + ranges


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
    found = []
    for server in sorted(set(servers.values())):
        together = _together([name for name in names if servers[name] == server], sizes, piece)
        found += [Bucket(server, place, tuple(some)) for place, some in enumerate(together)]
    return found


def _together(names: Sequence[str], sizes: Mapping[str, int], piece: int) -> Iterator[List[str]]:
    """Yield which of one server's variables share a bucket, each bucket as soon as it is full."""
    filling: List[str] = []
    for name in names:
        if sizes[name] >= ALONE:
            yield [name]
            continue
        if filling and sum(sizes[each] for each in filling) + sizes[name] > piece:
            yield filling
            filling = []
        filling.append(name)
    if filling:
        yield filling


ITEM_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}  # of a number, by ``train.wire``


class Layout:
    """The pieces of a model's variables.

    Args:
      profiles: the model's variables, by name and in the order of making.
      num_ps: number of parameter servers.
      slices: how many of what travels whole fill a server.

    ``sizes`` has the bytes of every piece by its name; ``cuts`` has the variables that are in slices.
    """

    def __init__(self, profiles: Mapping[str, VariableProfile], num_ps: int, slices: int = SLICES):
        self.profiles = profiles
        self.cuts = cuts(profiles, num_ps, slices)
        self.sizes: Dict[str, int] = slice_sizes(profiles, self.cuts)
        self.shapes = {piece.name: piece.shape for name in profiles for piece in self.pieces(name)}
        self._piece_bytes = piece_bytes(profiles, num_ps, slices)

    def buckets(self, servers: Mapping[str, int]) -> List[Bucket]:
        """Return the buckets of the variables with dense gradients.

        Backpropagation reaches the variables that were made last first, so their buckets go first.

        Args:
          servers: the index of each piece's server.
        """
        dense = [piece.name for name, each in self.profiles.items() if each.is_dense for piece in self.pieces(name)]
        return make_buckets(dense[::-1], self.sizes, servers, self._piece_bytes)

    def pieces(self, name: str) -> Iterator[Piece]:
        """Return the pieces of one variable, in order along the axis along which it is cut."""
        return pieces_of(name, self.profiles[name].shape, self.cuts.get(name))

    def read_bytes(self, name: str, wire: str = "float32") -> int:
        """Return bytes of the piece called ``name`` that a worker receives in a step, at most.

        Args:
          wire: the numbers in which values travel that all steps send whole.
        """
        of = name if name in self.profiles else whole(name)
        profile, size = self.profiles[of], self.sizes[name]
        if profile.is_dense:
            return size // profile.item_bytes * ITEM_BYTES[wire]
        if profile.lookups is None:
            return size
        parts = self.cuts[of].parts if of in self.cuts else 1
        return min(size, profile.lookups * profile.bytes // profile.shape[0] // parts)


def whole(name: str) -> str:
    """Return the variable that ``w/part_0`` is a slice of; any other name is its own."""
    return re.sub(r"/part_\d+$", "", name)
