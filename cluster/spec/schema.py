"""The published JSON Schema of hosts files: its rules in words, and the values of a document that do not fit it."""

import difflib
import json
import shlex
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple, Union

from cluster.errors import Problem
from cluster.spec.place import Path, key_text, shown
from cluster.spec.yaml_document import Document

SCHEMA_FILE = FilePath(__file__).parent.parent / "hosts.schema.json"
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
    """Return the JSON Schema of hosts files, as published for editors."""
    parsed: Dict[str, Any] = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    return parsed


@lru_cache(maxsize=1)
def keys() -> Dict[str, Mapping[str, Any]]:
    """Return the schema of every key by the key's path, such as ``train.checkpoint.dir``.

    Keys in items of lists have paths such as ``entry.port`` and ``receiver.url``.
    """
    whole = schema()
    items = [_keys_below(whole["definitions"][name], whole, f"{item}.") for item, name in ITEMS.items()]
    return dict([*_keys_below(whole, whole, ""), *(pair for below in items for pair in below)])


def _keys_below(
    node: Mapping[str, Any], whole: Mapping[str, Any], prefix: str
) -> Iterator[Tuple[str, Mapping[str, Any]]]:
    for name, below in node.get("properties", {}).items():
        resolved = {**_referred(below, whole), **below}
        yield prefix + name, resolved
        if "x-keys-of" not in below:  # otherwise the keys are listed in that place
            yield from _keys_below(resolved, whole, f"{prefix}{name}.")


def _referred(node: Mapping[str, Any], whole: Mapping[str, Any]) -> Mapping[str, Any]:
    name = node.get("$ref", "").rsplit("/", 1)[-1]
    referred: Mapping[str, Any] = whole["definitions"][name] if name else {}
    return referred


def in_words(node: Mapping[str, Any]) -> str:
    """Return a description of the values that fit ``node``, such as ``a whole number of at least 1``."""
    if "x-expected" in node:
        return str(node["x-expected"])
    if "enum" in node:
        return f"one of {', '.join(node['enum'])}"
    types = node["type"] if isinstance(node["type"], list) else [node["type"]]
    # Null means that a section is left out; no message asks a user to write null.
    nouns = [_NOUNS[name] for name in types if not (name == "null" and "object" in types)]
    return " or ".join([nouns[0] + _bounds(node), *nouns[1:]])


def _bounds(node: Mapping[str, Any]) -> str:
    if "maximum" in node:
        return f" from {node['minimum']} to {node['maximum']}"
    if "minimum" in node:
        return f" of at least {node['minimum']}"
    return f" above {node['exclusiveMinimum']}" if "exclusiveMinimum" in node else ""


_SHELL = frozenset("|&;<>$`*?~\n")  # characters that only a shell interprets
_COMMANDS = (("command",), ("container", "args"))  # lists of words that a shell would read
ValidationError = Any  # of jsonschema, which is loaded only to validate a file
_Finding = Tuple[Path, Problem]  # the problem of the value or key at the path


class Findings:
    """The problems of values and keys that do not fit the schema, with their paths."""

    def __init__(self, findings: Sequence[_Finding]):
        self.problems = [problem for _, problem in findings]
        self._paths = {path for path, _ in findings}
        self._ways = {way for path in self._paths for way in _prefixes(path)}

    def fit(self, *path: Union[str, int]) -> bool:
        """Return whether ``path``, everything below it and everything above it are free of problems."""
        return path not in self._ways and self.stand(*path)

    def stand(self, *path: Union[str, int]) -> bool:
        """Return whether ``path`` and everything above it are free of problems.

        Values below ``path`` may have problems.
        """
        return self._paths.isdisjoint(_prefixes(path))


def _prefixes(path: Path) -> List[Path]:
    return [path[:length] for length in range(len(path) + 1)]


def _is_whole(_: Any, value: object) -> bool:
    # 100.0 is an integer in JSON Schema, but it would reach range() and ports as a float.
    return isinstance(value, int) and not isinstance(value, bool)


@lru_cache(maxsize=1)
def _validator() -> Any:
    # Only here: jsonschema is half of the import time of a verb, and completion with the Tab key reads no file.
    from jsonschema import Draft7Validator, validators

    types = Draft7Validator.TYPE_CHECKER.redefine("integer", _is_whole)
    return validators.extend(Draft7Validator, type_checker=types)(schema())


def validate(document: Document) -> Findings:
    """Return the problems of all values and keys of ``document`` that do not fit the schema."""
    errors = _validator().iter_errors(document.value)
    findings = (finding for error in errors for finding in _explain(error, document))
    return Findings(list(dict.fromkeys(findings)))


def _explain(error: ValidationError, document: Document) -> Iterator[_Finding]:
    path = tuple(error.absolute_path)
    if "propertyNames" in error.relative_schema_path:
        path = (*path, error.instance)
        yield path, document.problem(path, in_words(error.schema), shown(error.instance), at_key=True)
    elif _keyword(error) == "additionalProperties":
        yield from _unknown_keys(error, path, document)
    elif _keyword(error) == "required":
        for key in set(error.validator_value).difference(error.instance):
            yield (*path, key), document.problem(path, f"the key {key}", "a mapping without it")
    elif _keyword(error) == "anyOf" and isinstance(error.instance, (dict, list)) and _meant(error):
        for inner in _meant(error):
            yield from _explain(inner, document)
    else:
        hint = _as_words(error.instance) if path in _COMMANDS else _quoting(error)
        yield path, document.problem(path, in_words(error.schema), document.found(path), hint)


def _keyword(error: ValidationError) -> str:
    return str(error.validator)


def _unknown_keys(error: ValidationError, path: Path, document: Document) -> Iterator[_Finding]:
    known = list(error.schema["properties"])
    for key in error.instance:
        if key not in known:
            expected, found = f"a key of {key_text(path) or 'a hosts file'}", f"the unknown key '{key}'"
            yield (*path, key), document.problem((*path, key), expected, found, _nearest_key(key, known), at_key=True)


def _nearest_key(key: str, known: Sequence[str]) -> str:
    home = next((other for other in keys() if other.rsplit(".", 1)[-1] == key), None)
    if home is not None:
        return _way_to(home)
    near = difflib.get_close_matches(key, known, 1)
    return f"did you mean '{near[0]}'?" if near else f"known keys: {', '.join(known)}"


def _way_to(home: str) -> str:
    section, _, key = home.rpartition(".")
    if section == "entry":
        return f"{key} belongs in an item of a role, such as {{host: gpu01, {key}: …}}"
    if section == "receiver":
        return f"{key} belongs in a receiver of on, such as failed: {{url: …}}"
    return f"did you mean {home}?" if section else f"{key} belongs at the top level of the file"


def _meant(error: ValidationError) -> List[ValidationError]:
    """Return the errors of the one ``anyOf`` branch that has the type of the value."""
    branches: Dict[Any, List[ValidationError]] = {}
    for inner in error.context or ():
        branches.setdefault(inner.relative_schema_path[0], []).append(inner)
    typed = [errors for errors in branches.values() if not any(map(_is_of_another_type, errors))]
    return typed[0] if len(typed) == 1 else []


def _is_of_another_type(error: ValidationError) -> bool:
    return _keyword(error) == "type" and not error.relative_path


def _as_words(command: object) -> str:
    """Return a hint with the words of a command that was given as one text.

    A shell would split the text into the same words. The hint is empty where ``command`` is not a text.
    """
    if not isinstance(command, str):
        return ""
    try:
        words = ["sh", "-c", command] if _SHELL.intersection(command) else shlex.split(command)
    except ValueError:  # an unclosed quote
        return 'write each word as an item: ["{python}", "train.py"]'
    return f"write each word as an item: {json.dumps(words, ensure_ascii=False)}"


def _quoting(error: ValidationError) -> str:
    """Return a hint on a text given for a number or list, or vice versa."""
    value, types = error.instance, error.schema.get("type", ())
    types = [types] if isinstance(types, str) else types
    if _keyword(error) != "type":
        return ""
    if isinstance(value, (int, float)) and "string" in types:
        return "put it in quotes"
    if isinstance(value, str) and "array" in types:
        return f"write it as a list: [{shown(value)}]"
    numeric = isinstance(value, str) and value.strip().lstrip("+-").replace(".", "", 1).isdigit()
    return "write it without quotes" if numeric and {"integer", "number"} & set(types) else ""
