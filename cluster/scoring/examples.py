"""Examples of metrics: their slices, and the newest of training.

Each worker packs its newest examples as bytes, and the chief joins them. The bytes are a line of JSON with type and
length of each column, and then the columns. A column of strings begins with the length of each string.
"""

import hashlib
import json
from collections import deque
from typing import Any, Deque, Dict, List, NamedTuple, Optional, Sequence

import numpy as np


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
_LONGEST = 40  # characters of a name


class Slice(NamedTuple):
    """One slice: its name in results, and whether each number of ``SliceNumbers`` belongs to it."""

    name: str
    numbers: np.ndarray


class SliceNumbers:
    """The values by which examples are sliced, numbered from 1 as they come; 0 is the number of all further values."""

    def __init__(self) -> None:
        self._numbers: Dict[Any, int] = {}
        self._sizes = np.zeros(1, np.int64)

    def numbers_of(self, values: np.ndarray) -> np.ndarray:
        """Return the number of each value, and count the examples.

        Args:
          values: integers, booleans, or strings as bytes, [n].
        """
        found = np.fromiter(map(self._number, values.tolist()), np.int32, len(values))
        sizes = np.bincount(found, minlength=self.number)
        sizes[: len(self._sizes)] += self._sizes
        self._sizes = sizes
        return found

    @property
    def number(self) -> int:
        """Return how many numbers there are."""
        return len(self._numbers) + 1

    def largest(self, most: int) -> List[Slice]:
        """Return the ``most`` slices with the most examples, then a slice of all other examples, if any remain.

        Of slices with equally many examples, the slice that came first counts as larger.
        """
        chosen = 1 + np.argsort(-self._sizes[1:], kind="stable")[:most]
        names = list(self._numbers)
        found = [Slice(slice_name(names[each - 1]), np.arange(self.number) == each) for each in chosen]
        others = np.ones(self.number, bool)
        others[chosen] = False
        return [*found, Slice(OTHERS, others)] if self._sizes[others].any() else found

    def _number(self, value: Any) -> int:
        known = self._numbers.get(value)
        if known is not None:
            return known
        return self._numbers.setdefault(value, self.number) if self.number <= MOST_SLICED else 0


def slice_name(value: Any) -> str:
    """Return the name in results of the slice ``value``: short, printable, and different for different slices."""
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    if text and text.isprintable() and len(text) <= _LONGEST and text != OTHERS:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    shown = "".join(each if each.isprintable() else "?" for each in text[: _LONGEST - 9])
    return f"{shown}~{digest}"
