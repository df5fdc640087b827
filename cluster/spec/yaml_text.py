"""Read the YAML of hosts files: the types of JSON, no tags, and keys that are texts, each once in its mapping.

Plain scalars follow the core schema of YAML 1.2, as in editors, and not YAML 1.1: ``no`` and ``on`` are texts, ``1e-3``
is a number, ``12:30`` is a text, ``010`` is ten.
"""

import re
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Pattern, Tuple

import yaml
from yaml.composer import ComposerError
from yaml.nodes import MappingNode, Node, SequenceNode
from yaml.reader import ReaderError

from cluster.errors import Problem
from cluster.spec.place import Place, shown

MOST_VALUES = 300_000  # including repetitions by aliases; 10,000 tasks of seven keys each have 160,000
DEEPEST = 100
_TAG = "tag:yaml.org,2002:"
TEXT_TAG, MAPPING_TAG, _NULL_TAG = _TAG + "str", _TAG + "map", _TAG + "null"
_SCALARS: Dict[str, Callable[[str], Any]] = {
    _NULL_TAG: lambda text: None,
    _TAG + "bool": lambda text: text.lower() == "true",
    _TAG + "int": lambda text: int(text, 0 if text[:2] in ("0x", "0o") else 10),
    _TAG + "float": float,
}
_PATTERNS = (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", list("-+.0123456789")),
    ("merge", r"<<", ["<"]),
)


_QUOTE = "put a text that has such characters in quotes"
# A message of PyYAML; then the expected text, the found text and the hint.
_SYNTAX = (
    (r"found character '\\t'", "spaces", "a tab", "indent with spaces"),
    (r"found character '(.)' that cannot start", "a value", r"the reserved character '\1'", _QUOTE),
    (r"expected (',' or ']'), but got '\['", r"\1", "'['", 'put a range in quotes: "gpu[01-04]"'),
    (r"expected (',' or '[]}]'), but got '(.+)'", r"\1", r"'\2'", "close the bracket"),
    (r"expected <block end>, but found '(.+)'", "the next key or item", r"'\1'", "check indentation and quotes"),
    (r"expected the node content, but found '(.+)'", "a value", r"'\1'", _QUOTE),
    (r"mapping values are not allowed", "no ':' here", "one", "align the keys, or put a text that has ': ' in quotes"),
    (r"unexpected end of stream", "a closing quote", "the end of the file", ""),
    (r"could not find expected ':'", "':' after a key", "none", ""),
    (r"undefined alias '(.+)'", "an anchor &\\1 above", "none", ""),
    (r"another document", "one document", "a second one", "remove the line ---"),
    (r"second occurrence", "each anchor once", "a second one", "give one another name"),
    (r"for merging, but found (\w+)", "a mapping to merge", r"a \1", ""),
)
_TOKENS = {"'<stream end>'": "the end of the file", "'<scalar>'": "more text", "'?'": "a key"}


def _resolvers() -> Dict[str, List[Tuple[str, Pattern[str]]]]:
    """Return the tags of plain scalars, by the first character of their text."""
    found: Dict[str, List[Tuple[str, Pattern[str]]]] = {}
    for name, pattern, firsts in _PATTERNS:
        for first in firsts:
            found.setdefault(first, []).append((_TAG + name, re.compile(f"^(?:{pattern})$")))
    return found


class _TooMuch(Exception):
    """A document has more values than a hosts file may have; the mark is the place of the first value too many."""


class _TooDeep(Exception):
    """Lists or mappings are nested deeper than a hosts file allows."""


class _Size(NamedTuple):
    """The number of values in a node, and their depth.

    ``values`` also counts the node itself, and counts a value again for each alias that repeats it.
    """

    values: int
    depth: int


class _Loader(yaml.SafeLoader):
    """Compose nodes, and collect the constructs that hosts files must not have."""

    yaml_implicit_resolvers = _resolvers()

    def __init__(self, text: str, where: str):
        self.problems: List[Problem] = []
        self._written = 0
        super().__init__(text)
        self.name = where

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if getattr(event, "tag", None) is not None:
            self._complain(event, "a value without a tag", f"the tag {event.tag}", "leave the tag out")
            event.tag, event.implicit = None, (True, True) if isinstance(event, yaml.ScalarEvent) else True
        if "\0" in (getattr(event, "value", None) or ""):
            self._complain(event, "a text without NUL characters", "one that has them")
        node: Any = super().compose_node(parent, index)
        if node.end_mark is None:
            raise ComposerError(None, None, "found an alias inside its own anchor", event.start_mark)
        self._weigh(node, event.start_mark)
        return node

    def _weigh(self, node: Any, mark: Any) -> None:
        """Refuse a node with too many values or levels before any code reads the whole node.

        A few lines of aliases can repeat values without end.
        """
        self._written += 1
        if not hasattr(node, "size"):
            below = [child.size for child in _children(node)]
            node.size = _Size(
                1 + sum(each.values for each in below), 1 + max((each.depth for each in below), default=0)
            )
        if max(self._written, node.size.values) > MOST_VALUES:
            raise _TooMuch(mark)
        if node.size.depth > DEEPEST:
            raise _TooDeep

    def compose_mapping_node(self, anchor: Any) -> MappingNode:
        node: MappingNode = super().compose_mapping_node(anchor)
        seen: Dict[str, int] = {}
        for key, _ in node.value:
            if key.tag not in (TEXT_TAG, _TAG + "merge"):
                self._complain(key, "a key that is a text", shown(value_of(key)), "put it in quotes")
            elif key.value in seen:
                self._complain(key, "each key once", f"a second '{key.value}'; the first is on line {seen[key.value]}")
            seen.setdefault(str(key.value), key.start_mark.line + 1)
        if sum(map(_merged, node.value)) > MOST_VALUES:
            raise _TooMuch(node.start_mark)
        self.flatten_mapping(node)
        return node

    def _complain(self, what: Any, expected: str, found: str, hint: str = "") -> None:
        self.problems.append(Place.of(what.start_mark).problem((), expected, found, hint))


def _children(node: Node) -> Iterator[Any]:
    if isinstance(node, MappingNode):
        for key, value in node.value:
            yield key
            yield value
    elif isinstance(node, SequenceNode):
        yield from node.value


def _merged(pair: Tuple[Node, Node]) -> int:
    """Return the number of pairs that one pair of a mapping becomes.

    A merge becomes the pairs of all its sources. Any other pair remains one pair.
    """
    key, value = pair
    if key.tag != _TAG + "merge" or not isinstance(value, (MappingNode, SequenceNode)):
        return 1
    sources = value.value if isinstance(value, SequenceNode) else [value]
    return sum(len(source.value) for source in sources if isinstance(source, MappingNode))


def parse(text: str, where: str) -> Tuple[Optional[Node], List[Problem]]:
    """Return the root node of the YAML in ``text``, and the problems of the text.

    The root is None if ``text`` has no value, or cannot be parsed.

    Args:
      where: the name of the file or of the override, for problems.
    """
    try:
        loader = _Loader(text, where)
        return loader.get_single_node(), loader.problems
    except ReaderError as error:
        before = text[: error.position]
        place = Place(where, before.count("\n") + 1, error.position - before.rfind("\n"))
        return None, [place.problem((), "valid YAML", f"the character U+{error.character:04X}", "remove it")]
    except _TooMuch as error:
        hint = "use fewer aliases and merges"
        place = Place.of(error.args[0])
        found = "more, counting the values that aliases repeat"
        return None, [place.problem((), f"at most {MOST_VALUES:,} values", found, hint)]
    except (RecursionError, _TooDeep):
        return None, [Place(where, 1, 1).problem((), "a hosts file", "lists or mappings nested too deeply")]
    except yaml.MarkedYAMLError as error:
        mark: Any = error.problem_mark or error.context_mark
        return None, [Place.of(mark).problem((), *_explained(str(error.problem)))]


def _explained(problem: str) -> Tuple[str, str, str]:
    """Return the expected text, the found text and a hint for an error of PyYAML.

    A reader needs no knowledge of YAML's grammar to understand the texts.
    """
    for pattern, expected, found, hint in _SYNTAX:
        match = re.search(pattern, problem)
        if match:
            return match.expand(expected), _TOKENS.get(match.expand(found), match.expand(found)), hint
    return "valid YAML", problem[len("found ") :] if problem.startswith("found ") else f"an error: {problem}", ""


def is_null(node: Node) -> bool:
    """Return whether ``node`` is null: written as null, or an omitted value."""
    return bool(node.tag == _NULL_TAG)


def value_of(node: Node) -> Any:
    """Return the value of ``node``: a dict, a list, a text, a number, a boolean or None."""
    if isinstance(node, MappingNode):
        return {str(key.value): value_of(value) for key, value in node.value}
    if isinstance(node, SequenceNode):
        return [value_of(item) for item in node.value]
    return _SCALARS.get(node.tag, str)(node.value)
