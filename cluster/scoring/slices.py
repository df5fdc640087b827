"""The slices of the data, by the number of their examples."""

import hashlib
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Union

import numpy as np

OTHERS = "others"
MOST_VALUES = 100_000  # different ones that are told apart; examples of further ones are among the others
_AT_ONCE = 1 << 16  # values
_LONGEST = 40  # characters of a name


class Slice(NamedTuple):
    """One slice: its name in results, and its examples, bool [n]."""

    name: str
    examples: np.ndarray


def largest_slices(values: Union[Sequence[Any], np.ndarray], most: int) -> List[Slice]:
    """Return the ``most`` slices with the most examples, then one of all other examples if there are any.

    Of slices with as many examples, the one that came first counts as larger.

    Args:
      values: the slice of each example: integers, booleans, or strings as bytes.
    """
    codes: Dict[Any, int] = {}
    numbers = np.fromiter((_code(codes, value) for value in _of_python(values)), np.int32, len(values))
    sizes = np.bincount(numbers[numbers < MOST_VALUES], minlength=len(codes))
    chosen = np.argsort(-sizes, kind="stable")[:most]
    names = list(codes)
    found = [Slice(slice_name(names[code]), numbers == code) for code in chosen]
    is_other = np.ones(MOST_VALUES + 1, bool)
    is_other[chosen] = False
    others = is_other[numbers]
    return [*found, Slice(OTHERS, others)] if others.any() else found


def _of_python(values: Union[Sequence[Any], np.ndarray]) -> Iterator[Any]:
    """Yield values as Python has them, without an object for each at once."""
    for begin in range(0, len(values), _AT_ONCE):
        some = values[begin : begin + _AT_ONCE]
        yield from some.tolist() if isinstance(some, np.ndarray) else some


def _code(codes: Dict[Any, int], value: Any) -> int:
    known = codes.get(value)
    if known is not None:
        return known
    if len(codes) >= MOST_VALUES:
        return MOST_VALUES
    return codes.setdefault(value, len(codes))


def slice_name(value: Any) -> str:
    """Return the name of a slice in results: short, printable, and different for different slices."""
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    if text and text.isprintable() and len(text) <= _LONGEST and text != OTHERS:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    shown = "".join(each if each.isprintable() else "?" for each in text[: _LONGEST - 9])
    return f"{shown}~{digest}"
