"""The meaning of each field of a dataclass, written beside the field; the reference is made of it."""

import collections.abc
from dataclasses import fields, is_dataclass
from typing import Any, Dict, Tuple, get_type_hints

_TEXT, _PATH, _PARTS = "means", "path", "parts"
_LISTS, _MAPPINGS = (list, tuple), (dict, collections.abc.Mapping)


def means(text: str) -> Dict[str, str]:
    """Return the metadata of a field with this meaning; ``null`` in it is JSON's, which is None here."""
    return {_TEXT: text}


def means_each(text: str) -> Dict[str, str]:
    """Return the metadata of a list of texts or numbers with the meaning of each: its path ends in ``[]``."""
    return {_TEXT: text, _PATH: "[]"}


def means_list(text: str) -> Dict[str, str]:
    """Return the metadata of a list with parts whose meaning is that of the whole list: its path has no ``[]``."""
    return {_TEXT: text, _PATH: ""}


def means_parts(front: str = "") -> Dict[str, str]:
    """Return the metadata of a field that has no row of its own, only its parts, each after the words ``front``."""
    return {_PARTS: front}


def meanings(kind: Any, prefix: str = "") -> Dict[str, str]:
    """Return the meaning of each field by its path, which reads as in jq: ``tasks[].role``."""
    found: Dict[str, str] = {}
    hints = get_type_hints(kind)
    for each in fields(kind):
        part, ending = _part(hints[each.name])
        path = f"{prefix}{each.name}{ending}"
        if _PARTS not in each.metadata:
            found[f"{prefix}{each.name}{each.metadata.get(_PATH, ending)}"] = each.metadata[_TEXT]
        if part is not None:
            front = each.metadata.get(_PARTS, "")
            found.update({below: f"{front}{text}" for below, text in meanings(part, f"{path}.").items()})
    return found


def _part(hint: Any, ending: str = "") -> Tuple[Any, str]:
    """Return the dataclass within a type, and ``[]`` where there is a list of it; mappings have no parts."""
    if is_dataclass(hint):
        return hint, ending
    origin: Any = getattr(hint, "__origin__", None)
    arguments: Tuple[Any, ...] = getattr(hint, "__args__", ())
    if origin in _LISTS:
        return _part(arguments[0], "[]")
    parts = [] if origin in _MAPPINGS else [_part(each, ending) for each in arguments]
    return next((each for each in parts if each[0] is not None), (None, ""))
