"""Examples for the measurement of metrics: all of an evaluation, or the newest of training; and their slices.

Each worker packs its newest examples as bytes, and the chief joins them. The bytes are a line of JSON with type and
length of each column, and then the columns. A column of strings begins with the length of each string.
"""

import hashlib
import json
from collections import deque
from typing import Any, Deque, Dict, Iterator, List, NamedTuple, Optional, Sequence, Union

import numpy as np

from cluster.runtime import process

_OF_A_STRING = 200  # bytes in addition to its own: Python's, and an entry of a dictionary
_PART_OF_MEMORY = 0.25  # for columns: a measurement takes up to three times as much again


class AllExamples:
    """The columns of all examples of an evaluation; if they do not fit into memory, those of the first examples.

    A string takes 8 bytes for each example that has it, and its own length once.

    Attributes:
      length: the number of examples that are kept.
      is_full: whether an example did not fit; neither this example nor a later one is kept.
    """

    def __init__(self, columns: int):
        self._chunks: List[List[np.ndarray]] = [[] for _ in range(columns)]
        self._strings: Dict[Any, Any] = {}
        self._left = int(_PART_OF_MEMORY * process.memory_left())  # bytes
        self.length, self.is_full = 0, False

    def add(self, columns: Sequence[np.ndarray], length: int) -> None:
        """Add a batch of ``length`` examples, unless this batch or an earlier one does not fit into memory.

        A column may have fewer values than ``length``: a metric may cover only some of the examples.
        """
        columns = [self._shared(each) if each.dtype == object else each for each in columns]
        self._left -= sum(each.nbytes for each in columns)
        self.is_full |= self._left < 0
        if self.is_full:
            return
        self.length += length
        for chunks, each in zip(self._chunks, columns):
            chunks.append(each)

    def _shared(self, strings: np.ndarray) -> np.ndarray:
        self._left -= sum(len(each) + _OF_A_STRING for each in {*strings} - self._strings.keys())
        shared = np.empty(len(strings), object)
        shared[:] = [self._strings.setdefault(each, each) for each in strings]
        return shared

    def columns(self) -> List[np.ndarray]:
        """Return the columns, [n] each. During the call, one column at a time is in memory twice."""
        for index, chunks in enumerate(self._chunks):
            self._chunks[index] = [np.concatenate(chunks) if chunks else np.zeros(0)]
        return [joined for (joined,) in self._chunks]


class NewestExamples:
    """The newest values of each column, at most ``most`` values in a column.

    Columns of one metric receive equally many values in each step, so values of the same example stay at the same
    index.
    """

    def __init__(self, columns: int, most: int):
        self._most = most
        self._chunks: List[Deque[np.ndarray]] = [deque() for _ in range(columns)]
        self._lengths = [0] * columns

    def add(self, columns: Sequence[np.ndarray]) -> None:
        """Add the values of one step; each column may have any number of values."""
        for index, each in enumerate(columns):
            chunks = self._chunks[index]
            chunks.append(each[-self._most :])
            self._lengths[index] += len(chunks[-1])
            while self._lengths[index] - len(chunks[0]) >= self._most:
                self._lengths[index] -= len(chunks.popleft())

    def columns(self) -> Optional[List[np.ndarray]]:
        """Return the columns, each with the oldest value first; None before the first step."""
        if not self._chunks or not self._chunks[0]:
            return None
        return [np.concatenate(list(chunks))[-self._most :] for chunks in self._chunks]


MOST_NEWEST = 65_536  # examples of all workers
LEAST_NEWEST = 64  # of one worker


def share_of(workers: int) -> int:
    """Return the number of newest examples that each worker keeps, where ``workers`` is the number of workers."""
    return max(LEAST_NEWEST, MOST_NEWEST // workers)


def pack(columns: Sequence[np.ndarray]) -> bytes:
    """Return ``columns`` as one bytes object. The values of a column are numbers, or strings as bytes."""
    heads, bodies = [], []
    for each in columns:
        if each.dtype == object:
            lengths = np.array([len(text) for text in each], np.int64)
            heads.append(["bytes", len(each)])
            bodies += [lengths.tobytes(), *each.tolist()]
        else:
            heads.append([each.dtype.str, len(each)])
            bodies.append(each.tobytes())
    return json.dumps(heads).encode() + b"\n" + b"".join(bodies)


def unpack(data: bytes) -> List[np.ndarray]:
    """Return the columns from which ``pack`` made ``data``."""
    head, _, body = data.partition(b"\n")
    columns, start = [], 0

    def take(kind: Any, number: int) -> np.ndarray:
        nonlocal start
        found = np.frombuffer(body, kind, number, start)
        start += found.nbytes
        return found

    for kind, number in json.loads(head.decode()):
        if kind != "bytes":
            columns.append(take(kind, number))
            continue
        lengths = take(np.int64, number)
        texts = np.empty(number, object)
        for index, length in enumerate(lengths.tolist()):
            texts[index] = body[start : start + length]
            start += length
        columns.append(texts)
    return columns


def together(windows: Sequence[Sequence[np.ndarray]]) -> List[np.ndarray]:
    """Return each column, joined over all ``windows``; a window has the columns of one worker."""
    return [np.concatenate(columns) for columns in zip(*windows)]


OTHERS = "others"
MOST_SLICED = 100_000  # different values that are distinguished; examples of further values are among the others
_AT_ONCE = 1 << 16  # values
_LONGEST = 40  # characters of a name


class Slice(NamedTuple):
    """One slice: its name in results, and the mask of its examples, bool [n]."""

    name: str
    examples: np.ndarray


def largest_slices(values: Union[Sequence[Any], np.ndarray], most: int) -> List[Slice]:
    """Return the ``most`` slices with the most examples, then a slice of all other examples, if any remain.

    Of slices with equally many examples, the slice that came first counts as larger.

    Args:
      values: the slice of each example: integers, booleans, or strings as bytes.
    """
    codes: Dict[Any, int] = {}
    numbers = np.fromiter((_code(codes, value) for value in _of_python(values)), np.int32, len(values))
    sizes = np.bincount(numbers[numbers < MOST_SLICED], minlength=len(codes))
    chosen = np.argsort(-sizes, kind="stable")[:most]
    names = list(codes)
    found = [Slice(slice_name(names[code]), numbers == code) for code in chosen]
    is_other = np.ones(MOST_SLICED + 1, bool)
    is_other[chosen] = False
    others = is_other[numbers]
    return [*found, Slice(OTHERS, others)] if others.any() else found


def _of_python(values: Union[Sequence[Any], np.ndarray]) -> Iterator[Any]:
    """Yield values as Python objects, without creating all objects at once."""
    for begin in range(0, len(values), _AT_ONCE):
        some = values[begin : begin + _AT_ONCE]
        yield from some.tolist() if isinstance(some, np.ndarray) else some


def _code(codes: Dict[Any, int], value: Any) -> int:
    known = codes.get(value)
    if known is not None:
        return known
    if len(codes) >= MOST_SLICED:
        return MOST_SLICED
    return codes.setdefault(value, len(codes))


def slice_name(value: Any) -> str:
    """Return the name in results of the slice ``value``: short, printable, and different for different slices."""
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    if text and text.isprintable() and len(text) <= _LONGEST and text != OTHERS:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    shown = "".join(each if each.isprintable() else "?" for each in text[: _LONGEST - 9])
    return f"{shown}~{digest}"
