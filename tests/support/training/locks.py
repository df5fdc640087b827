"""What a graph's locks wait for."""

from typing import Any, Iterable, List, Set


def fed_inside(graph: Any) -> List[str]:
    """The placeholders that operations under a lock need and the lock does not wait for, by their names.

    A session that closes may leave a step that waits for them for ever; the lock would be its own.
    """
    found: Set[str] = set()
    for opener in graph.get_operations():
        if opener.type == "ConsumeMutexLock":
            lock = opener.inputs[0].op
            found |= {op.name for op in _before([opener]) - _before([lock]) if op.type == "Placeholder"}
    return sorted(found)


def _before(ops: Iterable[Any]) -> Set[Any]:
    """The operations, and all that they need."""
    seen: Set[Any] = set()
    left = list(ops)
    while left:
        op = left.pop()
        if op not in seen:
            seen.add(op)
            left += [*(each.op for each in op.inputs), *op.control_inputs]
    return seen
