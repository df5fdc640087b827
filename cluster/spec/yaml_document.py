"""A YAML document that remembers the place of each of its values.

An override, ``--set train.steps=100``, changes the document before the document is validated.
"""

import re
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from cluster.errors import Problem
from cluster.spec.place import OVERRIDE, Path, Place, shown
from cluster.spec.yaml_text import MAPPING_TAG, TEXT_TAG, is_null, parse, value_of


class Document:
    """The values below one YAML node, and their places."""

    def __init__(self, root: Node):
        self._root = root
        self.value: Any = value_of(root)

    def section(self, *path: str) -> Dict[str, Any]:
        """Return the mapping at ``path``; an empty one where the document has no value there, or null."""
        found: Dict[str, Any] = self.value
        for key in path:
            found = found.get(key) or {}
        return found

    def problem(self, path: Path, expected: str, found: str, hint: str = "", at_key: bool = False) -> Problem:
        """Return the problem of the value at ``path``, or of the value's key if ``at_key`` is true."""
        return self.place(path, at_key).problem(path, expected, found, hint)

    def place(self, path: Path, at_key: bool = False) -> Place:
        """Return the place of the value at ``path``, or of the value's key if ``at_key`` is true.

        For a missing value, the result is the place of the nearest value around it.
        """
        return Place.of(self._at(path)[0 if at_key else 1].start_mark)

    def found(self, path: Path) -> str:
        """Return the value at ``path`` as errors show it. A number is shown as written: ``1e3`` and not ``1000.0``."""
        value = value_of(self._at(path)[1])
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return self.written(path) if is_number else shown(value)

    def written(self, path: Path) -> str:
        """Return the scalar at ``path`` as written: ``1.10`` and not ``1.1``."""
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
    """Return the nodes of a key and of its value below ``node``; None where the key does not exist."""
    if isinstance(node, SequenceNode) and isinstance(key, int) and key < len(node.value):
        return node.value[key], node.value[key]
    if isinstance(node, MappingNode):
        # The last pair wins: a merge (<<) inserts its pairs before the mapping's own keys.
        return next((pair for pair in reversed(node.value) if pair[0].value == key), None)
    return None


_KEY = re.compile(r"[^.\[\]]+(\.[^.\[\]]+|\[[0-9]+\])*")
_STEP = re.compile(r"\[([0-9]+)\]|([^.\[\]]+)")


class _Misfit(Exception):
    """An override does not fit into the document. The arguments are the path, the expected and the found value."""


def override(root: Node, overrides: Sequence[str]) -> Tuple[Node, List[Problem]]:
    """Return ``root`` with all ``overrides`` applied, and the problems of the overrides.

    The last override of a key wins.
    """
    problems: List[Problem] = []
    for text in overrides:
        root, wrong = _override(root, text)
        problems += wrong
    return root, problems


def _override(root: Node, text: str) -> Tuple[Node, List[Problem]]:
    key, equals, written = text.partition("=")
    place = Place(OVERRIDE + key)
    if not equals or not _KEY.fullmatch(key):
        return root, [place.problem((), "KEY=VALUE such as train.steps=100", shown(text))]
    # An override without a value is null, like a key without a value in the file.
    value, problems = parse(written if written.strip() else "null", place.where)
    if value is None:
        return root, problems or [place.problem((), "a value", shown(written))]
    path = tuple(int(index) if index else name for index, name in _STEP.findall(key))
    try:
        return _with(root, path, value, ()), problems
    except _Misfit as misfit:
        return root, [*problems, place.problem(*misfit.args)]


def _with(node: Optional[Node], path: Path, value: Node, above: Path) -> Node:
    """Return a copy of ``node`` with ``value`` at ``path``; a copy, because an alias may share the node."""
    if not path:
        return value
    step = _with_item if isinstance(path[0], int) else _with_key
    return step(node, path, value, above)


def _with_item(node: Optional[Node], path: Path, value: Node, above: Path) -> Node:
    if not isinstance(node, SequenceNode):
        raise _Misfit(above, "a list", _shown_node(node))
    index, items = int(path[0]), list(node.value)
    if index >= len(items):
        raise _Misfit((*above, index), f"an index below {len(items)}", str(index))
    items[index] = _with(items[index], path[1:], value, (*above, index))
    return SequenceNode(node.tag, items, node.start_mark, node.end_mark)


def _with_key(node: Optional[Node], path: Path, value: Node, above: Path) -> Node:
    if node is None or is_null(node):
        node = MappingNode(MAPPING_TAG, [], value.start_mark, value.end_mark)
    if not isinstance(node, MappingNode):
        raise _Misfit(above, "a mapping", _shown_node(node))
    old = child(node, path[0])
    key = old[0] if old else ScalarNode(TEXT_TAG, path[0], value.start_mark, value.end_mark)
    new = key, _with(old[1] if old else None, path[1:], value, (*above, path[0]))
    pairs = [new if pair is old else pair for pair in node.value]
    return MappingNode(node.tag, pairs if old else [*pairs, new], node.start_mark, node.end_mark)


def _shown_node(node: Optional[Node]) -> str:
    return "nothing" if node is None else shown(value_of(node))
