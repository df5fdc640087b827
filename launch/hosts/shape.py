"""Check values from elsewhere against shapes, as far down as the values are read.

str, int, object            a value of that kind; ``object``: any
None                        null
(A, B)                      one of the shapes
[A]                         a list, each of that shape
{"key": A, "more?": B}      an object with these keys, the latter only where it is there; others do not count
{str: A}                    an object whose every value has that shape
"""

from typing import Any, Dict, Iterable, Optional

Shape = Any


def fault(value: Any, shape: Shape, at: str = "") -> Optional[str]:
    """Return where a value is not of a shape, as ``.tasks[].role``; None where it is."""
    if shape is None:
        return at if value is not None else None
    if isinstance(shape, tuple):
        faults = [fault(value, each, at) for each in shape]
        return None if None in faults else max((each or "" for each in faults), key=len)
    if isinstance(shape, list):
        return _first(value, shape[0], f"{at}[]") if isinstance(value, list) else at
    if isinstance(shape, dict):
        return _fault_of_object(value, shape, at) if isinstance(value, dict) else at
    return None if isinstance(value, shape) else at


def _first(values: Iterable[Any], shape: Shape, at: str) -> Optional[str]:
    faults = (fault(each, shape, at) for each in values)
    return next((each for each in faults if each is not None), None)


def _fault_of_object(value: Dict[str, Any], shape: Shape, at: str) -> Optional[str]:
    faults = (_fault_at(value, key, inner, at) for key, inner in shape.items())
    return next((each for each in faults if each is not None), None)


def _fault_at(value: Dict[str, Any], key: Any, inner: Shape, at: str) -> Optional[str]:
    if key is str:
        return _first(value.values(), inner, f"{at}.*")
    name = key.rstrip("?")
    if name in value:
        return fault(value[name], inner, f"{at}.{name}")
    return None if key.endswith("?") else f"{at}.{name}"
