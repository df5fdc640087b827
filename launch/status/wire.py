"""Statuses as JSON values, and back: one way for all of their dataclasses.

Agents of other versions may have written what is read here. A field that this version does not know is ignored; one
that is missing has its default.
"""

from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from typing import Any, Callable, Dict, Optional, Type, TypeVar, get_type_hints

from launch.status.values import fields_in, from_values

Status = TypeVar("Status")


def encoded(status: Any) -> Dict[str, Any]:
    """Return the JSON values of a status, in the order of its fields."""
    values = dict(vars(status))
    for name, part in parts(status.__class__).items():
        if part is not None:
            values[name] = _each(encoded, values[name])
    return values


def decoded(kind: Type[Status], values: Any) -> Status:
    """Make a status out of its JSON values. Raises Malformed."""
    return from_values(kind, values)


def updated(status: Status, values: Any) -> Status:
    """Return a status with new values in some of its fields. Raises Malformed."""
    return replace(status, **fields_in(status.__class__, values))  # type: ignore[type-var]


@lru_cache(maxsize=None)
def parts(kind: Any) -> Dict[str, Optional[Type[Any]]]:
    """Return the fields of a status: the dataclass that each consists of, None for plain values."""
    hints = get_type_hints(kind)
    return {each.name: _part(hints[each.name]) for each in fields(kind)}


def _part(hint: Any) -> Optional[Type[Any]]:
    """Return the dataclass in a type hint: X in ``X``, ``Optional[X]`` and ``List[X]``."""
    return next((each for each in (hint, *getattr(hint, "__args__", ())) if is_dataclass(each)), None)


def _each(convert: Callable[[Any], Any], value: Any) -> Any:
    if value is None:
        return None
    return [convert(each) for each in value] if isinstance(value, list) else convert(value)
