"""Values of variables by their names in checkpoints: slices are joined, and values are compared to the bit."""

from typing import Any, Dict, List, Mapping, Optional, Sequence

import numpy as np

from cluster.variables.layout import Saved

Values = Dict[str, Any]


def joined(saved: Sequence[Saved], found: Sequence[Any]) -> Values:
    """Return whole values by name, joined from the values of variables, which may be slices.

    Args:
      saved: the variables or slices.
      found: the value of each, in the order of ``saved``.
    """
    values: Values = {}
    for each, value in zip(saved, found):
        if each.shape == each.full_shape:
            values[each.name] = np.asarray(value)
        else:
            values.setdefault(each.name, np.empty(each.full_shape, np.asarray(value).dtype))[_range(each)] = value
    return values


def part_of(each: Saved, values: Values) -> Any:
    """Return the value of ``each``, a variable or a slice, from ``values``, the whole values by name."""
    return values[each.name] if each.shape == each.full_shape else values[each.name][_range(each)]


def fitting(saved: Sequence[Saved], values: Values) -> List[Saved]:
    """Return the variables in ``saved`` whose whole shape equals that of their value in ``values``."""
    return [each for each in saved if each.name in values and np.shape(values[each.name]) == each.full_shape]


def _range(each: Saved) -> Any:
    return tuple(slice(begin, begin + length) for begin, length in zip(each.offset, each.shape))


def wide(value: Any) -> Any:
    """Return real numbers of any type as float64, and complex numbers as complex128."""
    value = np.asarray(value)
    return value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)


def difference(step: int, found: Mapping[str, Any], expected: Mapping[str, Any]) -> Optional[str]:
    """Return a message about the first variable in ``found`` that differs in any bit; None if all are equal.

    Args:
      step: the global step after which both sides were read.
      found: the servers' values, by name.
      expected: the values of one process, by the same names.
    """
    for name, value in found.items():
        one, other = np.asarray(value), np.asarray(expected[name])
        if one.dtype != other.dtype or one.shape != other.shape:
            return f"step {step}: servers' {name} is {_kind(one)}, and {_kind(other)} in one process"
        unlike = _unlike(one, other)
        if unlike.any():
            return (
                f"step {step}: servers' {name} differs from one process in {unlike.sum():,} of {unlike.size:,}"
                f" elements{_at_most(one, other)}"
            )
    return None


def _unlike(one: Any, other: Any) -> Any:
    """Return which elements have different bits, bool [elements].

    -0.0 differs from 0.0, and a NaN equals itself.
    """
    size = max(one.dtype.itemsize, 1)
    return (_bits(one).reshape(-1, size) != _bits(other).reshape(-1, size)).any(axis=1)


def _bits(values: Any) -> Any:
    return np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)


def _at_most(one: Any, other: Any) -> str:
    if one.dtype.kind not in "fiu":
        return ""
    with np.errstate(all="ignore"):
        largest = np.nanmax(np.abs(one.astype(np.float64) - other.astype(np.float64)))
    return f", by at most {largest:.2g}"


def _kind(values: Any) -> str:
    return f"{values.dtype} {list(values.shape)}"
