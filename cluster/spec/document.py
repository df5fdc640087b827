"""A YAML document that remembers where each of its values was written."""

from typing import Any, Optional, Tuple, Union

from yaml.nodes import MappingNode, Node, SequenceNode

from cluster.errors import Problem
from cluster.spec.place import Path, Place, shown
from cluster.spec.yaml_text import value_of


class Document:
    """The values below one YAML node, and the places where they were written."""

    def __init__(self, root: Node):
        self._root = root
        self.value: Any = value_of(root)

    def problem(self, path: Path, expected: str, found: str, hint: str = "", at_key: bool = False) -> Problem:
        """Return the problem of the value at ``path``, or of its key with ``at_key``."""
        return self.place(path, at_key).problem(path, expected, found, hint)

    def place(self, path: Path, at_key: bool = False) -> Place:
        """Return the place of the value at ``path``, or of its key with ``at_key``.

        A missing value has the place of the nearest value around it.
        """
        return Place.of(self._at(path)[0 if at_key else 1].start_mark)

    def found(self, path: Path) -> str:
        """The value at ``path`` as errors show it; a number as it was written, ``1e3`` and not ``1000.0``."""
        value = value_of(self._at(path)[1])
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return self.written(path) if is_number else shown(value)

    def written(self, path: Path) -> str:
        """The scalar at ``path`` as it was written: ``1.10`` and not ``1.1``."""
        return str(self._at(path)[1].value)

    def _at(self, path: Path) -> Tuple[Node, Node]:
        found = self._root, self._root
        for key in path:
            step = child(found[1], key)
            if step is None:
                break
            found = step
        return found


def child(node: Node, key: Union[str, int]) -> Optional[Tuple[Node, Node]]:
    """The key's node and the value's node below ``node``; None where there is no such key."""
    if isinstance(node, SequenceNode) and isinstance(key, int) and key < len(node.value):
        return node.value[key], node.value[key]
    if isinstance(node, MappingNode):
        # The last one wins: a merge (<<) puts what it brings before the mapping's own keys.
        return next((pair for pair in reversed(node.value) if pair[0].value == key), None)
    return None
