"""Measure the traits of a model's variables; these traits alone decide how each variable is sent.

a step takes only rows, and the gradient has rows          a table: it stays on its servers
its gradient is a float32 tensor of its own shape          every step sends it whole
any other                                                  it is fetched where a step reads it
"""

from dataclasses import dataclass, replace
from typing import Any, Container, Dict, List, Mapping, Optional, Sequence, Tuple

from cluster.runtime.tf_compat import tf
from cluster.variables.uses import takes_rows, uses

Shape = Tuple[int, ...]
_FROZEN = 64 << 20  # bytes; a smaller variable that is never trained is copied to every worker once


def elements(shape: Shape) -> int:
    """Return the number of elements in a tensor of this shape."""
    found = 1
    for length in shape:
        found *= length
    return found


@dataclass(frozen=True)
class VariableProfile:
    """One variable of a model.

    ``lookups`` is None for a variable that is read whole. For a table it is the number of rows that a worker takes for
    one batch, including repeated rows; an operation that takes an unknown number counts as taking all rows.
    ``is_dense``: whether the variable is float32 and its gradient is a tensor of its shape. ``may_be_cut``: whether
    slices of the variable can be updated separately, as if each were a variable.
    """

    shape: Shape
    item_bytes: int
    lookups: Optional[int] = None
    is_dense: bool = False
    may_be_cut: bool = True

    @property
    def travels(self) -> bool:
        """Return whether every step sends the variable, whole or in rows."""
        return self.is_dense or self.lookups is not None

    @property
    def bytes(self) -> int:
        """Return the bytes of the whole value."""
        return self.item_bytes * elements(self.shape)


def profile_variables(
    variables: Sequence[Any], gradients: Mapping[str, Any], is_elementwise: bool, step: Container[Any]
) -> Dict[str, VariableProfile]:
    """Return the profile of every variable, by name and in the order of creation.

    Args:
      gradients: by the name of each variable that has a gradient, the gradient: a tensor, or ``tf.IndexedSlices``.
      is_elementwise: whether the optimizer treats each element of a variable by itself.
      step: the operations of a training step; other operations do not count.
    """
    return {each.op.name: _profile(each, gradients.get(each.op.name), is_elementwise, step) for each in variables}


def _profile(variable: Any, grad: Any, is_elementwise: bool, step: Container[Any]) -> VariableProfile:
    shape, dtype = tuple(variable.shape.as_list()), variable.dtype.base_dtype
    may_be_cut = is_elementwise and variable.constraint is None
    is_dense = isinstance(grad, tf.Tensor) and dtype == tf.float32
    found = VariableProfile(shape, dtype.size, is_dense=is_dense, may_be_cut=may_be_cut)
    if isinstance(grad, tf.IndexedSlices) or (grad is None and found.bytes > _FROZEN):
        return replace(found, lookups=lookups(variable, step))
    return found


def lookups(variable: Any, step: Container[Any]) -> Optional[int]:
    """Return the number of rows of ``variable`` that a step takes for one batch.

    The result is None if a step does not use the variable, or does more with it than take rows.
    """
    rows = int((variable.shape.as_list() or [0])[0])
    found = [(op, tensor) for op, tensor in uses(variable) if op in step]
    if not found or not all(takes_rows(op, tensor) for op, tensor in found):
        return None
    numbers: List[Optional[int]] = [op.inputs[1].shape.num_elements() for op, _ in found]
    return sum(rows if number is None else number for number in numbers)
