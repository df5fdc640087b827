"""A copy of a part of a graph, for other inputs.

Control inputs of an operation, from which it takes no value, do not count here.
"""

from typing import Any, List, Mapping, Sequence

from cluster.runtime.tf_compat import tf

_VOCABULARIES = ("HashTable", "HashTableV2")  # never change; a table that changes has a handle of another type
# TensorFlow counts these as stateful, whatever their table.
_STATELESS = (*_VOCABULARIES, "LookupTableFind", "LookupTableFindV2", "LookupTableSize", "LookupTableSizeV2")


def needs_state(tensors: Sequence[Any], inputs: Sequence[Any]) -> List[Any]:
    """Return the operations behind ``tensors``, up to ``inputs``, that may give another result at another time.

    Such operations are variables, random numbers, Python functions, loops and branches.
    """
    return sorted((op for op in _between(tensors, inputs) if _has_state(op)), key=lambda op: str(op.name))


def copied(tensors: Sequence[Any], replaced: Mapping[Any, Any]) -> List[Any]:
    """Return the values of ``tensors`` for other inputs, computed by copies of the operations in between.

    Args:
      tensors: tensors that need no state; see ``needs_state``.
      replaced: the other inputs, each by the name of the tensor that it replaces.
    """
    graph = tf.get_default_graph()
    new = dict(replaced)
    for op in _between(tensors, [graph.get_tensor_by_name(name) for name in replaced]):
        if op.type not in _VOCABULARIES:
            with tf.control_dependencies(None), tf.device(None), tf.device(op.device):
                copy = _copy(op, [new.get(each.name, each) for each in op.inputs])
            for old, made in zip(op.outputs, copy.outputs):
                made.set_shape(old.shape)  # which a lookup in a vocabulary knows from Python alone
                new[old.name] = made
    return [new.get(each.name, each) for each in tensors]


def _between(tensors: Sequence[Any], inputs: Sequence[Any]) -> List[Any]:
    """Return the operations that make ``tensors``, up to ``inputs``; each follows the operations of its inputs."""
    seen, found = {each.op for each in inputs}, []  # in a loop the search returns to operations that it has seen
    left = [(each.op, False) for each in tensors]
    while left:
        op, is_ready = left.pop()
        if is_ready:
            found.append(op)
        elif op not in seen:
            seen.add(op)
            left += [(op, True), *((each.op, False) for each in op.inputs)]
    return found


def _copy(op: Any, inputs: Sequence[Any]) -> Any:
    attrs = {name: value for name, value in op.node_def.attr.items() if name != "_class"}  # of colocation
    dtypes = [each.dtype for each in op.outputs]
    return op.graph.create_op(op.type, list(inputs), dtypes, attrs=attrs, op_def=op.op_def, name=f"{op.name}/ahead")


def _has_state(op: Any) -> bool:
    if op._get_control_flow_context() is not None:
        return True
    return bool(op.op_def.is_stateful) and op.type not in _STATELESS
