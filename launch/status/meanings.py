"""The meaning of each field of a dataclass, written beside the field; the reference is made of it."""

from dataclasses import fields, is_dataclass
from typing import Any, Dict, get_type_hints

_KEY = "means"


def means(text: str) -> Dict[str, str]:
    """Return the metadata of a field with this meaning; ``null`` in it is JSON's, which is None here."""
    return {_KEY: text}


def meanings(kind: Any, prefix: str = "") -> Dict[str, str]:
    """Return the meaning of each field by its path, which reads as in jq: ``tasks[].role``."""
    found: Dict[str, str] = {}
    hints = get_type_hints(kind)
    for each in fields(kind):
        hint = hints[each.name]
        part = next((each for each in (hint, *getattr(hint, "__args__", ())) if is_dataclass(each)), None)
        many = part is not None and getattr(hint, "__origin__", None) is list
        path = f"{prefix}{each.name}{'[]' if many else ''}"
        found[path] = each.metadata[_KEY]
        if part is not None:
            found.update(meanings(part, f"{path}."))
    return found
