"""Values of a model's metrics over examples: of all of them, and of the largest slices of the data."""

import hashlib
import math
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Union

import numpy as np

from cluster.scoring.measures import BadExamples, measure

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


class Reading(NamedTuple):
    """A metric whose parts are columns of examples: {part: index of the column}."""

    kind: str
    columns: Mapping[str, int]
    most: int  # slices with results of their own


def read_metrics(readings: Mapping[str, Reading], columns: Sequence[np.ndarray]) -> Dict[str, float]:
    """Return the value of each metric and of its slices: ``auc``, ``auc/FR``, ``auc/others``; NaN for an undefined one.

    Args:
      columns: [n] each; columns of different metrics may have different lengths.

    Raises:
      BadExamples: a metric has no meaning for its columns; names the metric.
    """
    found: Dict[str, float] = {}
    for name, reading in readings.items():
        parts = {part: columns[index] for part, index in reading.columns.items()}
        try:
            found.update(_with_slices(name, reading, parts))
        except BadExamples as error:
            raise BadExamples(f"the metric {name}: {error}") from None
    return found


def in_words(values: Mapping[str, float]) -> str:
    """Return metrics as text: ``auc 0.7812, gauc undefined``."""
    shown = {name: f"{value:.4g}" if math.isfinite(value) else "undefined" for name, value in values.items()}
    return ", ".join(f"{name} {value}" for name, value in shown.items())


def _with_slices(name: str, reading: Reading, parts: Dict[str, np.ndarray]) -> Dict[str, float]:
    values = parts.pop("slice", None)
    found = {name: measure(reading.kind, parts)}
    if values is None:
        return found
    if len(values) != len(next(iter(parts.values()))):
        raise BadExamples(f"expected a slice of each example, found {len(values)} slices")
    for each in largest_slices(values, reading.most):
        found[f"{name}/{each.name}"] = measure(reading.kind, {part: of[each.examples] for part, of in parts.items()})
    return found
