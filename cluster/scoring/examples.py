"""The examples that metrics are measured on: all of an evaluation, or the newest of training."""

from collections import deque
from typing import Any, Deque, Dict, List, Optional, Sequence

import numpy as np

from cluster.runtime import memory

_OF_A_STRING = 200  # bytes, beside its own: Python's, and an entry of a dictionary
_PART_OF_MEMORY = 0.25  # for columns: to measure takes up to three times as much again


class AllExamples:
    """The columns of all examples, the first of them if no more fit into memory.

    A string takes 8 bytes for each example, and its own length once.

    Attributes:
      length: how many examples are kept.
      is_full: whether there were more.
    """

    def __init__(self, columns: int):
        self._chunks: List[List[np.ndarray]] = [[] for _ in range(columns)]
        self._strings: Dict[Any, Any] = {}
        self._left = int(_PART_OF_MEMORY * memory.left())  # bytes
        self.length, self.is_full = 0, False

    def add(self, columns: Sequence[np.ndarray], length: int) -> None:
        """Add a batch of so many examples, of which columns may have fewer; none after the first that does not fit."""
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
        """Return each column, [n]; one of them at a time is in memory twice."""
        for index, chunks in enumerate(self._chunks):
            self._chunks[index] = [np.concatenate(chunks) if chunks else np.zeros(0)]
        return [joined for (joined,) in self._chunks]


class NewestExamples:
    """The newest values of each column, at most ``most`` of them.

    Columns of one metric get equally many values in each step, so their values stay side by side.
    """

    def __init__(self, columns: int, most: int):
        self._most = most
        self._chunks: List[Deque[np.ndarray]] = [deque() for _ in range(columns)]
        self._lengths = [0] * columns

    def add(self, columns: Sequence[np.ndarray]) -> None:
        """Add the values of one step."""
        for index, each in enumerate(columns):
            chunks = self._chunks[index]
            chunks.append(each[-self._most :])
            self._lengths[index] += len(chunks[-1])
            while self._lengths[index] - len(chunks[0]) >= self._most:
                self._lengths[index] -= len(chunks.popleft())

    def columns(self) -> Optional[List[np.ndarray]]:
        """Return each column, the oldest value first; None before the first step."""
        if not self._chunks or not self._chunks[0]:
            return None
        return [np.concatenate(list(chunks))[-self._most :] for chunks in self._chunks]
