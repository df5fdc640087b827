"""Find the uses of a variable in a finished graph: reads, rows taken, and changes.

The graph is read when the model, its gradients and the evaluation are all in it.
"""

from typing import Any, Iterable, Iterator, List, Set, Tuple

from cluster.runtime.tf_compat import tf

GATHERS = ("Gather", "GatherV2", "ResourceGather")
# TensorFlow 2.x takes rows and adds them up in one operation.
SEGMENTS = tuple(f"SparseSegment{kind}{more}" for kind in ("Sum", "Mean", "SqrtN") for more in ("", "WithNumSegments"))
SHAPES = ("Shape", "VariableShape")
READS = ("Identity", "ReadVariableOp")
_HARMLESS = ("IsVariableInitialized", "VarIsInitializedOp", *SHAPES)
_INTO = ("Enter", "RefEnter", "Switch", "RefSwitch")  # what brings a variable into a loop, or a branch
# Prefixes of the types of all operations that change a variable.
_WRITES = ("Assign", "Scatter", "Apply", "ResourceScatter", "ResourceApply", "ResourceSparseApply", "SparseApply",
          "StridedSliceAssign", "ResourceStridedSliceAssign", "CountUpTo", "ResourceCountUpTo")  # fmt: skip


def uses(variable: Any) -> Iterator[Tuple[Any, Any]]:
    """Yield the operations that use a variable's value, each with the tensor that brings it.

    Left out is what needs no value: its initializer, the question whether it has one, its shape.
    """
    for op, tensor in readers(variable):
        if op.type not in _HARMLESS:
            yield op, tensor


def readers(variable: Any) -> Iterator[Tuple[Any, Any]]:
    """Return the operations behind a variable and its plain reads, each with the tensor that it takes."""
    yield from _behind(handle_of(variable), variable.initializer)


def handle_of(variable: Any) -> Any:
    """Return the tensor behind all that is done with a variable."""
    return variable.op.outputs[0]


def _behind(tensor: Any, initializer: Any) -> Iterator[Tuple[Any, Any]]:
    for op in tensor.consumers():
        if op.type in READS:
            yield from _behind(op.outputs[0], initializer)
        elif op is not initializer:
            yield op, tensor


def takes_rows(op: Any, tensor: Any) -> bool:
    """Return whether an operation takes rows of ``tensor`` and can be moved.

    An operation inside a loop or a branch cannot be moved.
    """
    if op._get_control_flow_context() is not None or op.inputs[0] is not tensor:
        return False
    if op.type in SEGMENTS:
        return True
    if op.type not in GATHERS:
        return False
    axis = tf.get_static_value(op.inputs[2]) if len(op.inputs) > 2 else 0
    return axis is not None and int(axis) == 0 and op.node_def.attr["batch_dims"].i == 0


def ancestors(things: Iterable[Any]) -> Set[Any]:
    """Return all operations that must run for these tensors and operations."""
    left = [op for thing in things for op in ops_of(thing)]
    found: Set[Any] = set(left)
    while left:
        op = left.pop()
        new = {*(each.op for each in op.inputs), *op.control_inputs} - found
        found |= new
        left += new
    return found


def ops_of(thing: Any) -> List[Any]:
    """Return the operations that make a tensor, a sparse gradient or nothing."""
    if thing is None:
        return []
    if isinstance(thing, tf.IndexedSlices):
        return [thing.values.op, thing.indices.op]
    return [thing] if isinstance(thing, tf.Operation) else [thing.op]


def writes(variable: Any) -> List[Any]:
    """Return the operations that change a variable, also in loops and branches; its initializer left out."""
    return [op for op in _writes_behind(handle_of(variable)) if op is not variable.initializer]


def _writes_behind(handle: Any) -> Iterator[Any]:
    for op in handle.consumers():
        if op.type in _INTO:
            for inside in op.outputs:
                yield from _writes_behind(inside)
        elif op.type.startswith(_WRITES) and op.inputs[0] is handle:
            yield op


def way_in(write: Any) -> Any:
    """Return what brings a variable into the loop or branch in which it is changed, or else the change itself."""
    while write.inputs[0].op.type in _INTO:
        write = write.inputs[0].op
    return write


def ways_out(write: Any, step: Set[Any]) -> List[Any]:
    """Return what a step runs, outside of loops and branches, once a variable was changed; there, the change itself."""
    if _is_outside(write):
        return [write]
    found: List[Any] = []
    seen, left = {write}, [write]
    while left:
        op = left.pop()
        after = {*op._control_outputs, *(user for tensor in op.outputs for user in tensor.consumers())} & step - seen
        seen |= after
        for user in after:
            (found if _is_outside(user) else left).append(user)
    return found


def _is_outside(op: Any) -> bool:
    context = op._get_control_flow_context()
    return context is None or (op.type in ("Exit", "RefExit") and context.outer_context is None)
