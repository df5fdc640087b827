"""What a finished graph does with a variable: who reads it, takes rows of it, or changes it.

The graph is read when the model, its gradients and the evaluation are all in it.
"""

from typing import Any, Iterable, Iterator, List, Set, Tuple

from cluster.engine import tf

GATHERS = ("Gather", "GatherV2", "ResourceGather")
# TensorFlow 2.x takes rows and adds them up in one operation.
SEGMENTS = tuple(f"SparseSegment{kind}{more}" for kind in ("Sum", "Mean", "SqrtN") for more in ("", "WithNumSegments"))
SHAPES = ("Shape", "VariableShape")
READS = ("Identity", "ReadVariableOp")
_HARMLESS = ("IsVariableInitialized", "VarIsInitializedOp", *SHAPES)
_WRITES = ("Assign", "Scatter", "Apply", "ResourceScatter", "ResourceApply", "ResourceSparseApply", "SparseApply")


def uses(variable: Any) -> Iterator[Tuple[Any, Any]]:
    """The operations that use a variable's value, each with the tensor that brings it.

    Left out is what needs no value: its initializer, the question whether it has one, its shape.
    """
    for op, tensor in readers(variable):
        if op.type not in _HARMLESS:
            yield op, tensor


def readers(variable: Any) -> Iterator[Tuple[Any, Any]]:
    """The operations behind a variable and its plain reads, each with the tensor that it takes."""
    yield from _behind(_handle(variable), variable.initializer)


def _handle(variable: Any) -> Any:
    return variable.op.outputs[0]


def _behind(tensor: Any, initializer: Any) -> Iterator[Tuple[Any, Any]]:
    for op in tensor.consumers():
        if op.type in READS:
            yield from _behind(op.outputs[0], initializer)
        elif op is not initializer:
            yield op, tensor


def takes_rows(op: Any, tensor: Any) -> bool:
    """Whether an operation takes rows of ``tensor`` and can be moved: inside a loop or a branch it cannot."""
    if op._get_control_flow_context() is not None or op.inputs[0] is not tensor:
        return False
    if op.type in SEGMENTS:
        return True
    if op.type not in GATHERS:
        return False
    axis = tf.get_static_value(op.inputs[2]) if len(op.inputs) > 2 else 0
    return axis is not None and int(axis) == 0 and op.node_def.attr["batch_dims"].i == 0


def ancestors(things: Iterable[Any]) -> Set[Any]:
    """All operations that must run for these tensors and operations."""
    left = [op for thing in things for op in ops_of(thing)]
    found: Set[Any] = set(left)
    while left:
        op = left.pop()
        new = {*(each.op for each in op.inputs), *op.control_inputs} - found
        found |= new
        left += new
    return found


def ops_of(thing: Any) -> List[Any]:
    """The operations that make a tensor, a sparse gradient or nothing."""
    if thing is None:
        return []
    if isinstance(thing, tf.IndexedSlices):
        return [thing.values.op, thing.indices.op]
    return [thing] if isinstance(thing, tf.Operation) else [thing.op]


def writes(variable: Any) -> List[Any]:
    """The operations that change a variable, its initializer left out."""
    found = [op for op in _handle(variable).consumers() if op.type.startswith(_WRITES)]
    return [op for op in found if op is not variable.initializer and op.inputs[0] is _handle(variable)]
