"""Convert dataclasses to JSON values and back; an error names the field of a missing or wrong value.

A reader may be older or newer than the writer. So a reader skips unknown fields, and missing fields have their
defaults. Fields are texts, numbers, truth values, lists, mappings with texts as keys, and dataclasses of these. Each
field may be ``Optional``.
"""

import collections.abc
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from functools import lru_cache
from typing import Any, Dict, Mapping, Tuple, Type, TypeVar, Union, get_type_hints

T = TypeVar("T")
_SCALARS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", type(None): "null"}
_LISTS = {list: list, tuple: tuple, collections.abc.Sequence: tuple}
_MAPPINGS = (dict, collections.abc.Mapping)


class Malformed(ValueError):
    """JSON values do not fit a dataclass. The text names the field and omits the value, which may be a secret."""


def to_values(record: Any) -> Dict[str, Any]:
    """Return a dataclass as values for JSON: each field by its name, in the order of the fields."""
    kind: Any = type(record)
    values = dict(vars(record))
    for name in _with_parts(kind):
        values[name] = _plain(values[name])
    return values


@lru_cache(maxsize=None)
def _with_parts(kind: Any) -> Tuple[str, ...]:
    """Return the fields that may be more than a scalar: most are scalars, and statuses of large runs have 100,000."""
    return tuple(name for name, hint in _types(kind).items() if not _is_scalar(hint))


def _is_scalar(hint: Any) -> bool:
    options = hint.__args__ if getattr(hint, "__origin__", None) is Union else (hint,)
    return all(each in _SCALARS for each in options)


def _plain(value: Any) -> Any:
    if type(value) in _SCALARS:
        return value
    if is_dataclass(value):
        return to_values(value)
    if isinstance(value, collections.abc.Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def from_values(kind: Type[T], values: Any) -> T:
    """Return the dataclass ``kind`` with the fields in the JSON values.

    Raises:
      Malformed: a field without a default is missing, or a value has the wrong type.
    """
    record: T = _record(kind, values, "")
    return record


def part_of(kind: Type[T], *records: Any, **others: Any) -> T:
    """Return an object of the dataclass ``kind``; each field comes from ``others``, or else from ``records``, by name.

    Records are dataclasses or dictionaries; the first record that has a field counts. Fields of records that ``kind``
    lacks are ignored.
    """
    wanted: Any = kind
    given: Dict[str, Any] = {}
    for record in reversed(records):
        given.update(record if isinstance(record, dict) else vars(record))
    shared = {name: given[name] for name in _types(wanted) if name in given}
    return kind(**{**shared, **others})


def updated(record: T, values: Any) -> T:
    """Return a copy of the dataclass ``record``, in which ``values``, from JSON, replace fields of the same names.

    Raises Malformed.
    """
    return replace(record, **fields_in(type(record), values))  # type: ignore[type-var]


def fields_in(kind: Any, values: Any, at: str = "") -> Dict[str, Any]:
    """Return the values from JSON for fields of the dataclass ``kind``, each converted to the type of its field.

    ``at`` is the name of the enclosing field, for errors. Raises Malformed.
    """
    if not isinstance(values, dict):
        raise _refused(at or kind.__name__, "an object", values)
    types = _types(kind)
    return {name: _read(types[name], values[name], _within(at, name)) for name in types if name in values}


def _record(kind: Any, values: Any, at: str) -> Any:
    known = fields_in(kind, values, at)
    for each in fields(kind):
        if each.name not in known and _is_needed(each):
            raise Malformed(f"{_within(at, each.name)}: expected {_described(_types(kind)[each.name])}, found nothing")
    return kind(**known)


@lru_cache(maxsize=None)
def _types(kind: Any) -> Dict[str, Any]:
    """Return the type of each field."""
    hints = get_type_hints(kind)
    return {each.name: hints[each.name] for each in fields(kind)}


def _is_needed(each: "Field[Any]") -> bool:
    factory: Any = each.default_factory
    return each.default is MISSING and factory is MISSING


def _within(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _read(hint: Any, value: Any, at: str) -> Any:
    """Return a value as its type requires: a list becomes a tuple where the type is a tuple."""
    if hint is Any:
        return value
    if hint in _SCALARS:
        return _scalar(hint, value, at)
    if is_dataclass(hint):
        return _record(hint, value, at)
    origin, arguments = hint.__origin__, hint.__args__
    if origin is Union:
        return _one_of(hint, arguments, value, at)
    if origin in _LISTS:
        if not isinstance(value, list):
            raise _refused(at, "a list", value)
        return _LISTS[origin](_read(arguments[0], each, f"{at}[{index}]") for index, each in enumerate(value))
    if origin in _MAPPINGS:
        if not isinstance(value, dict):
            raise _refused(at, "an object", value)
        return {key: _read(arguments[1], each, _within(at, key)) for key, each in value.items()}
    raise TypeError(f"{at}: fields of the type {hint} cannot be read from JSON")


def _scalar(hint: Any, value: Any, at: str) -> Any:
    """Return a scalar; a whole number also fits a float, and a truth value fits neither kind of number."""
    accepted = (int, float) if hint is float else hint
    if not isinstance(value, accepted) or (isinstance(value, bool) and hint is not bool):
        raise _refused(at, _SCALARS[hint], value)
    return value


def _one_of(hint: Any, options: Tuple[Any, ...], value: Any, at: str) -> Any:
    """Return the value as the first type that accepts the value reads it."""
    left = [each for each in options if each is not type(None)]
    if value is None and len(left) < len(options):
        return None
    if len(left) == 1:  # whose error is more precise
        return _read(left[0], value, at)
    for option in left:
        try:
            return _read(option, value, at)
        except Malformed:
            continue
    raise _refused(at, _described(hint), value)


def _described(hint: Any) -> str:
    """Return the values that a type accepts, in words."""
    if hint in _SCALARS:
        return _SCALARS[hint]
    if getattr(hint, "__origin__", None) is Union:
        return " or ".join(_described(each) for each in hint.__args__)
    if getattr(hint, "__origin__", None) in _LISTS:
        return f"a list, each item {_described(hint.__args__[0])}"
    return "an object"


def _refused(at: str, expected: str, value: Any) -> Malformed:
    """Return the error for a value that does not fit."""
    return Malformed(f"{at}: expected {expected}, found {_kind_of(value)}")


def _kind_of(value: Any) -> str:
    """Return the kind of a JSON value, in words."""
    if isinstance(value, (list, tuple)):
        return "a list"
    return "an object" if isinstance(value, Mapping) else _SCALARS.get(type(value), type(value).__name__)
