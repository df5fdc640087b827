"""The published JSON Schema of hosts files, and its rules in words."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, Tuple

SCHEMA_FILE = Path(__file__).parent.parent / "hosts.schema.json"
ITEMS = {"entry": "entry_mapping", "receiver": "receiver"}  # items of lists, and their definitions
_NOUNS = {
    "integer": "a whole number",
    "number": "a number",
    "string": "a text",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}


def schema() -> Dict[str, Any]:
    """The JSON Schema of hosts files, as it is published for editors."""
    parsed: Dict[str, Any] = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    return parsed


@lru_cache(maxsize=1)
def keys() -> Dict[str, Mapping[str, Any]]:
    """The schema of every key, ``train.checkpoint.dir``; those of items as ``entry.port`` and ``receiver.url``."""
    whole = schema()
    items = [_keys_below(whole["definitions"][name], whole, f"{item}.") for item, name in ITEMS.items()]
    return dict([*_keys_below(whole, whole, ""), *(pair for below in items for pair in below)])


def _keys_below(
    node: Mapping[str, Any], whole: Mapping[str, Any], prefix: str
) -> Iterator[Tuple[str, Mapping[str, Any]]]:
    for name, below in node.get("properties", {}).items():
        resolved = {**_referred(below, whole), **below}
        yield prefix + name, resolved
        if "x-keys-of" not in below:  # else they are listed there
            yield from _keys_below(resolved, whole, f"{prefix}{name}.")


def _referred(node: Mapping[str, Any], whole: Mapping[str, Any]) -> Mapping[str, Any]:
    name = node.get("$ref", "").rsplit("/", 1)[-1]
    referred: Mapping[str, Any] = whole["definitions"][name] if name else {}
    return referred


def in_words(node: Mapping[str, Any]) -> str:
    """Describe the values that fit ``node``: ``a whole number of at least 1``."""
    if "x-expected" in node:
        return str(node["x-expected"])
    if "enum" in node:
        return f"one of {', '.join(node['enum'])}"
    types = node["type"] if isinstance(node["type"], list) else [node["type"]]
    # Null stands for a section that is left out; nobody is told to write it.
    nouns = [_NOUNS[name] for name in types if not (name == "null" and "object" in types)]
    return " or ".join([nouns[0] + _bounds(node), *nouns[1:]])


def _bounds(node: Mapping[str, Any]) -> str:
    if "maximum" in node:
        return f" from {node['minimum']} to {node['maximum']}"
    if "minimum" in node:
        return f" of at least {node['minimum']}"
    return f" above {node['exclusiveMinimum']}" if "exclusiveMinimum" in node else ""
