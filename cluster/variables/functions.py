"""Find which variables the functions of a graph change: bodies of ``tf.function``, ``Defun``, and branches and loops.

An operation that calls functions takes a variable's handle like any other operation. Only the body shows whether the
variable is read or changed. A body may call other functions.
"""

from typing import Any, Dict, Iterator, List, Set, Tuple

# Operations on a resource variable's handle that leave its value unchanged. Any other operation may change the value.
READERS = (
    "ReadVariableOp",
    "ResourceGather",
    "ResourceGatherNd",
    "VariableShape",
    "VarIsInitializedOp",
    "DisableCopyOnRead",
)
# Operations whose outputs are their input handles.
PASSES = ("Enter", "Exit", "Identity", "IdentityN", "Merge", "NextIteration", "Switch", "RefEnter", "RefExit",
          "RefIdentity", "RefMerge", "RefNextIteration", "RefSwitch")  # fmt: skip


class Functions:
    """The functions of a graph. The first call that needs a function reads all functions from the graph."""

    def __init__(self, graph: Any):
        self._graph = graph
        self._found: Dict[str, Any] = {}
        self._known: Dict[Tuple[str, int], bool] = {}

    def change(self, op: Any, index: int) -> bool:
        """Return whether a function that ``op`` calls may change the variable at input ``index``."""
        return self._call_changes(op.node_def, len(op.inputs), index)

    def are_called_by(self, op: Any) -> bool:
        """Return whether an operation calls functions: by an attribute, or by its type, like a ``Defun``."""
        return bool(called(op.node_def)) or bool(self._graph._is_function(op.type))

    def nodes(self, op: Any) -> Iterator[Any]:
        """Yield the definition of ``op``, and of all operations in the functions that ``op`` calls by an attribute."""
        yield op.node_def
        left, seen = called(op.node_def), {""}
        while left:
            name = left.pop()
            if name not in seen and name in self._all:
                seen.add(name)
                for node in self._all[name].node_def:
                    yield node
                    left += called(node)

    @property
    def _all(self) -> Dict[str, Any]:
        if not self._found:
            self._found = {each.signature.name: each for each in self._graph.as_graph_def().library.function}
        return self._found

    def _call_changes(self, node: Any, inputs: int, index: int) -> bool:
        names = [node.op] if node.op in self._all else called(node)
        return any(self._changes(name, self._argument(name, node.op, inputs, index)) for name in names)

    def _argument(self, name: str, kind: str, inputs: int, index: int) -> int:
        """Return the index of the function's argument for an input of the call: -1 or less for an input without one.

        A condition or a dataset precedes the function's arguments; gradients follow them.
        """
        arguments = len(self._all[name].signature.input_arg) if name in self._all else 0
        return index if kind == "SymbolicGradient" else index - (inputs - arguments)

    def _changes(self, name: str, argument: int) -> bool:
        if name not in self._all or not 0 <= argument < len(self._all[name].signature.input_arg):
            return False
        key = (name, argument)
        if key not in self._known:
            self._known[key] = False  # for a function that calls itself, the rest of its body decides
            self._known[key] = self._body_changes(self._all[name], argument)
        return self._known[key]

    def _body_changes(self, function: Any, argument: int) -> bool:
        handles = _handles(function, function.signature.input_arg[argument].name)
        return any(
            self._node_changes(node, len(inputs), index)
            for node in function.node_def
            for inputs in [_inputs(node)]
            for index, each in enumerate(inputs)
            if each in handles
        )

    def _node_changes(self, node: Any, inputs: int, index: int) -> bool:
        if node.op in (*READERS, *PASSES):
            return False
        is_call = node.op in self._all or called(node)
        return self._call_changes(node, inputs, index) if is_call else True


def called(node: Any) -> List[str]:
    """Return the names of the functions that a node's attributes name."""
    return [name for attr in node.attr.values() for name in _named_by(attr)]


def _named_by(attr: Any) -> Iterator[str]:
    if attr.HasField("func"):
        yield attr.func.name
    elif attr.HasField("list"):
        yield from (each.name for each in attr.list.func)


def _inputs(node: Any) -> List[str]:
    """Return, for each input value of a node in a function, the argument or the node that it comes from."""
    return [each.split(":")[0] for each in node.input if not each.startswith("^")]


def _handles(function: Any, argument: str) -> Set[str]:
    """Return the argument, and the nodes of a function's body that pass it on."""
    found, before = {argument}, 0
    while len(found) > before:
        before = len(found)
        found |= {node.name for node in function.node_def if node.op in PASSES and found & set(_inputs(node))}
    return found
