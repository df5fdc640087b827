"""The layout of a model's variables: the pieces on the servers, the buckets that are sent, and the saved pieces.

A piece is a whole variable, or a slice of one. In a checkpoint a piece has another name, or is a part of a tensor.

Buckets are the pieces that a step sends over the network. Each slice of a large variable
(``cluster.variables.placement``) is a bucket of its own. Small variables on the same server share a bucket, because
every request costs time whatever its size. Every worker must find the same buckets in the same order, so buckets depend
on the variables alone.
"""

import re
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple

from cluster.variables.placement import SLICES, Piece, cuts, piece_bytes, pieces_of, slice_sizes
from cluster.variables.profile import Shape, VariableProfile, elements


@dataclass(frozen=True)
class Saved:
    """A variable and its place in a checkpoint, which is a tensor or a slice of a tensor.

    The tensor has the name ``name`` and the shape ``full_shape``. ``offset`` is where the variable begins in it.
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
        """Return the bytes of the variable in memory."""
        return elements(self.shape) * int(self.dtype.size)

    def spec(self, begin: Shape, size: Shape) -> str:
        """Return TensorFlow's text for the slice of ``size`` at ``begin`` of this variable: "100 16 20,10:0,16".

        The text for the whole tensor is "".
        """
        if size == self.full_shape:
            return ""
        begins = (offset + first for offset, first in zip(self.offset, begin))
        ranges = ":".join(f"{first},{length}" for first, length in zip(begins, size))
        return " ".join(map(str, self.full_shape)) + " " + ranges


ALONE = 256 << 10  # bytes; joining and splitting larger variables takes longer than a request


@dataclass(frozen=True)
class Bucket:
    """Variables, or slices of variables, on one server that are sent together.

    ``place`` is the position of the bucket in the order of its server's buckets, from 0.
    """

    server: int
    place: int
    names: Tuple[str, ...]

    @property
    def name(self) -> str:
        """Return the name of the bucket, such as ``bucket_2_of_ps_0``."""
        return f"bucket_{self.place}_of_ps_{self.server}"


def make_buckets(
    names: Sequence[str], sizes: Mapping[str, int], servers: Mapping[str, int], piece: int
) -> List[Bucket]:
    """Return buckets of about ``piece`` bytes; each server's buckets are in the order of their gradients.

    Args:
      names: the names of variables or slices, in the order in which their gradients are computed.
      sizes: bytes of each variable or slice.
      servers: the index of the server of each variable or slice.
    """
    found = []
    for server in sorted(set(servers.values())):
        together = _together([name for name in names if servers[name] == server], sizes, piece)
        found += [Bucket(server, place, tuple(some)) for place, some in enumerate(together)]
    return found


def _together(names: Sequence[str], sizes: Mapping[str, int], piece: int) -> Iterator[List[str]]:
    """Yield the variables of one server that share a bucket, each bucket as soon as it is full."""
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
      profiles: the model's variables, by name and in the order of creation.
      num_ps: number of parameter servers.
      slices: the number of slices on each server, counted over all variables that are sent whole.

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

        Backpropagation first reaches the variables that were created last, so their buckets go first.

        Args:
          servers: the index of each piece's server.
        """
        dense = [piece.name for name, each in self.profiles.items() if each.is_dense for piece in self.pieces(name)]
        return make_buckets(dense[::-1], self.sizes, servers, self._piece_bytes)

    def pieces(self, name: str) -> Iterator[Piece]:
        """Return the pieces of one variable, in order along the axis of the cut."""
        return pieces_of(name, self.profiles[name].shape, self.cuts.get(name))

    def read_bytes(self, name: str, wire: str = "float32") -> int:
        """Return the largest number of bytes of the piece ``name`` that a worker receives in a step.

        Args:
          wire: the number format of values that all steps send whole.
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
    """Return the name of the variable that a slice belongs to: ``w`` for ``w/part_0``. Other names stay unchanged."""
    return re.sub(r"/part_\d+$", "", name)
