"""What a model's variables are like, before they are made where they will stay."""

from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

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
    ``is_dense``: whether ``tf.get_variable`` made it, of float32, and its gradient is a tensor of its own shape.
    """

    shape: Tuple[int, ...]  # () for a scalar and for a shape that is not known
    item_bytes: int
    lookups: Optional[int] = None
    is_dense: bool = False

    @property
    def bytes(self) -> int:
        """Bytes of the whole value."""
        size = self.item_bytes
        for length in self.shape:
            size *= length
        return size


def measure(build: Callable[[], Any]) -> Dict[str, Measured]:
    """Every variable that ``build`` makes, by name and in the order of making, measured in a graph of its own.

    ``build`` returns the loss. It must make the variables as the real graph will: by ``tf.get_variable``.
    """
    asked: Set[str] = set()

    def note(getter: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
        asked.add(name)
        return getter(name, *args, **kwargs)

    with tf.Graph().as_default(), tf.variable_scope(tf.get_variable_scope(), custom_getter=note):
        loss = build()
        made = tf.global_variables()
        lookups = {variable.op.name: _lookups(variable) for variable in made}  # gradients would be uses, too
        dense = _with_dense_gradients(loss) & asked
        return {variable.op.name: _measured(variable, lookups[variable.op.name], dense) for variable in made}


def _with_dense_gradients(loss: Any) -> Set[str]:
    variables = tf.trainable_variables()
    if not variables:
        return set()
    gradients = zip(variables, tf.gradients(loss, [variable.value() for variable in variables]))
    return {
        variable.op.name for variable, grad in gradients if isinstance(grad, tf.Tensor) and grad.dtype == tf.float32
    }


def _measured(variable: Any, lookups: Optional[int], dense: Set[str]) -> Measured:
    known = variable.shape.is_fully_defined()
    size = tf.as_dtype(variable.dtype).base_dtype.size if known else 0
    return Measured(
        tuple(variable.shape.as_list()) if known else (), size, lookups, known and variable.op.name in dense
    )


def _lookups(variable: Any) -> Optional[int]:
    shape = variable.shape.as_list() if variable.shape.is_fully_defined() else []
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
