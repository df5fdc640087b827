"""The layout of a model's variables: the pieces on the servers, the buckets in which they travel, and the saved pieces.

A piece is a variable, whole or a slice. A checkpoint knows a piece under another name, or as a part of a tensor.

Buckets are the pieces in which a step goes over the network. A large variable has been cut into slices
(``cluster.variables.placement``), each a bucket of its own. Small variables that are on the same server share a
bucket, as every request costs time whatever its size. Every worker must find the same buckets in the same order, so
buckets follow from the variables alone.
"""

import re
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from cluster.variables.placement import SLICES, cuts, piece_bytes, slice_shapes, slice_sizes
from cluster.variables.profile import VariableProfile

Shape = Tuple[int, ...]


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


def elements(shape: Shape) -> int:
    """Return how many numbers a tensor of this shape holds."""
    found = 1
    for length in shape:
        found *= length
    return found


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


ITEM_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}  # of a number, by ``train.wire``


class Piece(NamedTuple):
    """A variable on a server, or a slice of one: ``offset`` is where it begins in the whole."""

    name: str
    shape: Tuple[int, ...]
    offset: Tuple[int, ...]


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
        self.shapes = slice_shapes(profiles, self.cuts)
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
        shape = self.profiles[name].shape
        if name not in self.cuts:
            yield Piece(name, shape, (0,) * len(shape))
            return
        axis, begin = self.cuts[name].axis, 0
        for index, length in enumerate(self.cuts[name].lengths(shape)):
            offset = tuple(int(begin) if at == axis else 0 for at in range(len(shape)))
            yield Piece(f"{name}/part_{index}", self.shapes[f"{name}/part_{index}"], offset)
            begin += length

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
