"""What a model's variables are like, before they are made where they will stay."""

from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from cluster.engine import tf

_GATHERS = ("Gather", "GatherV2", "ResourceGather")
_READS = ("Identity", "ReadVariableOp")
_CHECKS = ("IsVariableInitialized", "VarIsInitializedOp")


@dataclass(frozen=True)
class Measured:
    """One variable of a model.

    ``lookups`` is None for a variable that is read whole. For a table, of which a model
    only takes rows by ``tf.gather`` or ``tf.nn.embedding_lookup``, it is the number of rows
    taken for one batch, repeated ones counted; all rows where that is not known.
    """

    shape: Tuple[int, ...]  # () for a scalar and for a shape that is not known
    item_bytes: int
    lookups: Optional[int] = None

    @property
    def bytes(self) -> int:
        """Bytes of the whole value."""
        size = self.item_bytes
        for length in self.shape:
            size *= length
        return size


def measure(build: Callable[[], Any]) -> Dict[str, Measured]:
    """Every variable that ``build`` makes, by name, measured in a graph of its own.

    ``build`` must make the variables as the real graph will: by ``tf.get_variable``.
    """
    with tf.Graph().as_default():
        build()
        return {variable.op.name: _measured(variable) for variable in tf.global_variables()}


def _measured(variable: Any) -> Measured:
    shape = variable.shape.as_list() if variable.shape.is_fully_defined() else []
    size = tf.as_dtype(variable.dtype).base_dtype.size
    return Measured(tuple(shape), size if variable.shape.is_fully_defined() else 0, _lookups(variable, shape))


def _lookups(variable: Any, shape: Any) -> Optional[int]:
    uses = list(_uses(variable.op.outputs[0], variable.initializer))
    if not shape or not uses or not all(_takes_rows(op, tensor) for op, tensor in uses):
        return None
    numbers: List[Optional[int]] = [op.inputs[1].shape.num_elements() for op, _ in uses]
    return sum(int(shape[0]) if number is None else number for number in numbers)


def _uses(tensor: Any, initializer: Any) -> Iterator[Tuple[Any, Any]]:
    """The operations that use a variable's value, each with the tensor that brings it."""
    for op in tensor.consumers():
        if op.type in _READS:
            yield from _uses(op.outputs[0], initializer)
        elif op is not initializer and op.type not in _CHECKS:
            yield op, tensor


def _takes_rows(op: Any, tensor: Any) -> bool:
    if op.type not in _GATHERS or op.inputs[0] is not tensor:
        return False
    axis = tf.get_static_value(op.inputs[2]) if len(op.inputs) > 2 else 0
    return axis is not None and int(axis) == 0 and op.node_def.attr["batch_dims"].i == 0
