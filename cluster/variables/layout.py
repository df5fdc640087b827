"""The layout of a model's variables: whole or in slices, and the server of each."""

import re
from typing import Dict, Iterator, List, Mapping, NamedTuple, Tuple

from cluster.variables.buckets import Bucket, make_buckets
from cluster.variables.partition import SLICES, cuts, piece_bytes, slice_shapes, slice_sizes
from cluster.variables.profile import VariableProfile

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
