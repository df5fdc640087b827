"""Find the uses of a variable in a finished graph: reads, rows taken, and changes.

The graph is searched once the model, its gradients and the evaluation are all in it.
"""

from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Set, Tuple

from cluster.runtime.tf_compat import tf
from cluster.variables.functions import PASSES, READERS, Functions

GATHERS = ("Gather", "GatherV2", "ResourceGather")
# TensorFlow 2.x takes rows and sums them in one operation.
SEGMENTS = tuple(f"SparseSegment{kind}{more}" for kind in ("Sum", "Mean", "SqrtN") for more in ("", "WithNumSegments"))
SHAPES = ("Shape", "VariableShape")
READS = ("Identity", "ReadVariableOp")
_BRANCHES = ("If", "StatelessIf", "Case", "StatelessCase")
_ONE = tf.AttrValue(i=1)
_HARMLESS = ("IsVariableInitialized", "VarIsInitializedOp", *SHAPES)


def uses(variable: Any) -> Iterator[Tuple[Any, Any]]:
    """Yield the operations that use a variable's value, each with the tensor of the value.

    Operations that need no value are left out: the initializer, the test for a value, the shape.
    """
    for op, tensor in readers(variable):
        if op.type not in _HARMLESS:
            yield op, tensor


def readers(variable: Any) -> Iterator[Tuple[Any, Any]]:
    """Yield the operations that take a variable or a plain read of it, each with the tensor that it takes.

    The initializer is left out.
    """
    yield from _behind(handle_of(variable), variable.initializer)


def handle_of(variable: Any) -> Any:
    """Return the tensor from which all uses of a variable begin."""
    return variable.op.outputs[0]


def _behind(tensor: Any, initializer: Any) -> Iterator[Tuple[Any, Any]]:
    for op in tensor.consumers():
        if op.type in READS:
            yield from _behind(op.outputs[0], initializer)
        elif op is not initializer:
            yield op, tensor


def takes_rows(op: Any, tensor: Any) -> bool:
    """Return whether ``op`` takes rows of ``tensor``, and could take the same rows from a table on servers.

    An operation inside a loop or a branch could not take rows from there.
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
    """Return all operations that must run for these tensors and operations, including their own."""
    return _behind_all(things, lambda op: {*(each.op for each in op.inputs), *op.control_inputs})


def sources(tensors: Iterable[Any]) -> Set[Any]:
    """Return all operations whose values these tensors depend on; control inputs do not count."""
    return _behind_all(tensors, lambda op: {each.op for each in op.inputs})


def _behind_all(things: Iterable[Any], behind: Callable[[Any], Set[Any]]) -> Set[Any]:
    left = [op for thing in things for op in ops_of(thing)]
    found: Set[Any] = set(left)
    while left:
        new = behind(left.pop()) - found
        found |= new
        left += new
    return found


def ops_of(thing: Any) -> List[Any]:
    """Return the operations that make ``thing``, a tensor or sparse gradient; an operation itself; none for None."""
    if thing is None:
        return []
    if isinstance(thing, tf.IndexedSlices):
        return [thing.values.op, thing.indices.op]
    return [thing] if isinstance(thing, tf.Operation) else [thing.op]


def writes(variable: Any, functions: Optional[Functions] = None) -> Dict[Any, Any]:
    """Return the operations that may change a variable, except its initializer, each with its entry.

    An operation may be in a loop or a branch, or may call a function that changes the variable. Its entry is the
    operation that takes the variable itself: the entry into the loop or branch, or else the changing operation.

    Args:
      functions: the functions of the variable's graph; pass the same object for all variables of a graph.
    """
    handle = handle_of(variable)
    functions = functions or Functions(handle.graph)
    found: Dict[Any, Any] = {}
    for way in handle.consumers():
        if way is not variable.initializer:
            found.update((op, way) for op in _changing(way, handle, functions))
    return found


def _changing(op: Any, handle: Any, functions: Functions) -> Iterator[Any]:
    """Yield ``op``, or operations after it, if they may change the variable of the handle."""
    left, seen = [(op, handle)], {op}
    while left:
        op, handle = left.pop()
        if op.type in PASSES and _is_handle(op.outputs[0]):
            behind = [(user, each) for each in op.outputs if _is_handle(each) for user in each.consumers()]
            left += [pair for pair in behind if pair[0] not in seen]
            seen |= {user for user, _ in behind}
        elif any(_may_change(op, index, functions) for index, each in enumerate(op.inputs) if each is handle):
            yield op


def _is_handle(tensor: Any) -> bool:
    return bool(tensor.dtype._is_ref_dtype) or tensor.dtype == tf.resource


def _may_change(op: Any, index: int, functions: Functions) -> bool:
    if op.type in READERS:
        return False
    if op.inputs[index].dtype != tf.resource:
        return op.type not in _HARMLESS and _takes_reference(op, index)
    return functions.change(op, index) if functions.are_called_by(op) else True


def _takes_reference(op: Any, index: int) -> bool:
    """Return whether an operation takes an input by reference, as all operations that change the input do."""
    flags: List[bool] = []
    for each in op.op_def.input_arg:
        number = op.get_attr(each.number_attr) if each.number_attr else 1
        flags += [each.is_ref] * (len(op.get_attr(each.type_list_attr)) if each.type_list_attr else number)
    return flags[index]


def ways_out(write: Any, step: Set[Any]) -> List[Any]:
    """Return the first operations of ``step`` that follow the change ``write`` outside loops and branches.

    If ``write`` itself is outside, the result is only ``write``; for a branch in one operation, reads of its results.
    """
    if write.type in _BRANCHES and write.outputs and _is_outside(write):
        # A control dependency on such an operation is met as soon as the branch begins; its result exists at the end.
        return [tf.identity(each).op for each in write.outputs]
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


def finish_turns(write: Any) -> None:
    """Let the loops around ``write`` end only after all their iterations.

    By default a loop may end before an earlier iteration has changed a variable. After this call, the ``ways_out`` of
    ``write`` follow the changes of all iterations.
    """
    if "parallel_iterations" in write.node_def.attr:  # a loop of one operation
        write._set_attr("parallel_iterations", _ONE)
    context, outermost = write._get_control_flow_context(), None
    while context is not None:
        outermost = context if context.IsWhileContext() else outermost
        context = context.outer_context
    if outermost is not None:
        for op in write.graph.get_operations():
            if op.type in ("Enter", "RefEnter") and op.get_attr("frame_name").decode() == outermost.name:
                op._set_attr("parallel_iterations", _ONE)


def replace(old: Any, new: Any, users: Set[Any]) -> None:
    """Connect ``users`` to the tensor ``new`` wherever they take ``old``."""
    for op in old.consumers():
        for index, taken in enumerate(op.inputs):
            if taken is old and op in users:
                op._update_input(index, new)
