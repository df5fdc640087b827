"""Reading a small JSON file of another program as a dataclass: of the right types and sizes, or not at all."""

import json
import math
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, Mapping, Tuple, Type, TypeVar, Union, get_type_hints

from cluster.protocol.regular_file import read_at_most

ANY_NUMBER = {"any_number": True}  # of a field: also NaN and the infinities, as a loss may be
_BOUND = 2**63  # of every other number
_MOST_KEYS = 10_000  # of a dictionary
_NAMES: Dict[Any, str] = {
    type(None): "null", float: "a number", int: "an integer", str: "a text", bool: "true or false",
}  # fmt: skip
T = TypeVar("T")


def read_record(path: Path, kind: Type[T], limit: int) -> T:
    """Return the content of a file as ``kind``, a dataclass of plain types.

    Raises:
      FileNotFoundError: there is no such file.
      OSError: it cannot be read, or is no regular file.
      ValueError: it is no such record, or has more than ``limit`` bytes.
    """
    data = read_at_most(path, limit)
    try:
        values: Any = json.loads(data.decode())
    except (RecursionError, MemoryError):
        raise ValueError("expected JSON of a few levels, found more") from None
    if not isinstance(values, dict):
        raise ValueError(f"expected a JSON object, found {_show(values)}")
    return make_record(values, kind)


def make_record(values: Mapping[str, Any], kind: Type[T]) -> T:
    """Return ``values`` as ``kind``. Raises ValueError for one that is missing, unknown, or of another type."""
    wanted = _fields(kind)  # type: ignore[arg-type]
    for name, value in values.items():
        if name not in wanted:
            raise ValueError(f"expected {', '.join(wanted)}, found {_show(name)}")
        hint, any_number = wanted[name]
        if not _fits(value, hint, any_number):
            raise ValueError(f"{name}: expected {_name(hint)}, found {_show(value)}")
    try:
        return kind(**values)
    except TypeError as error:  # one without a default is missing
        raise ValueError(str(error)) from None


@lru_cache(maxsize=None)  # of a few kinds; agents read many records of each
def _fields(kind: Type[Any]) -> Dict[str, Tuple[Any, bool]]:
    """Return the type of each field, and whether it may be any number."""
    hints = get_type_hints(kind)
    return {each.name: (hints[each.name], bool(each.metadata.get("any_number"))) for each in fields(kind)}


def _fits(value: Any, hint: Any, any_number: bool) -> bool:
    origin = getattr(hint, "__origin__", None)
    if origin is Union:
        return any(_fits(value, each, any_number) for each in hint.__args__)
    if origin is dict:
        return (
            isinstance(value, dict)
            and len(value) <= _MOST_KEYS
            and all(name.isprintable() for name in value)
            and all(_fits(each, hint.__args__[1], any_number) for each in value.values())
        )
    if origin is list:
        return isinstance(value, list) and all(_fits(each, hint.__args__[0], any_number) for each in value)
    if hint is float:
        return type(value) in (int, float) and _is_sane(value, any_number)
    return type(value) is hint and (hint is not int or _is_sane(value, False))


def _is_sane(value: Union[int, float], any_number: bool) -> bool:
    if isinstance(value, float) and any_number:
        return True
    return -_BOUND < value < _BOUND and not math.isnan(value)


def _name(hint: Any) -> str:
    if getattr(hint, "__origin__", None) is Union:
        return " or ".join(_name(each) for each in hint.__args__)
    if getattr(hint, "__origin__", None) is list:
        return "a list of texts"
    return _NAMES.get(hint, "an object of numbers")


def _show(value: Any) -> str:
    """Return a value, however large or deep, in a few characters."""
    if isinstance(value, (dict, list)):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    if isinstance(value, int) and not -_BOUND < value < _BOUND:
        return "a number of more than 64 bits"
    return ascii(value)[:60]
