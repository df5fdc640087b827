"""A variable as a checkpoint knows it: under another name, or as a slice."""

from dataclasses import dataclass
from typing import Any, Tuple

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
