"""Values of variables by the names that checkpoints have: those that are cut are whole."""

from typing import Any, Dict, List, Sequence

import numpy as np

from cluster.variables.layout import Saved

Values = Dict[str, Any]


def joined(saved: Sequence[Saved], found: Sequence[Any]) -> Values:
    """Return whole values by name, of variables that may be slices.

    Args:
      found: the value of each variable.
    """
    values: Values = {}
    for each, value in zip(saved, found):
        if each.shape == each.full_shape:
            values[each.name] = np.asarray(value)
        else:
            values.setdefault(each.name, np.empty(each.full_shape, np.asarray(value).dtype))[_range(each)] = value
    return values


def part_of(each: Saved, values: Values) -> Any:
    """Return the value of one variable, which may be a slice, out of whole values."""
    return values[each.name] if each.shape == each.full_shape else values[each.name][_range(each)]


def fitting(saved: Sequence[Saved], values: Values) -> List[Saved]:
    """Return those variables of which there is a value of their whole shape."""
    return [each for each in saved if each.name in values and np.shape(values[each.name]) == each.full_shape]


def _range(each: Saved) -> Any:
    return tuple(slice(begin, begin + length) for begin, length in zip(each.offset, each.shape))
