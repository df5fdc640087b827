"""What a graph's locks wait for."""

from typing import Any, List, Set

from cluster.variables.uses import ancestors


def fed_inside(graph: Any) -> List[str]:
    """The placeholders that operations under a lock need and the lock does not wait for, by their names.

    A session that closes may leave a step that waits for them for ever; the lock would be its own.
    """
    found: Set[str] = set()
    for opener in graph.get_operations():
        if opener.type == "ConsumeMutexLock":
            inside = ancestors([opener]) - ancestors([opener.inputs[0]])
            found |= {op.name for op in inside if op.type == "Placeholder"}
    return sorted(found)
