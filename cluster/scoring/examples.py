"""The examples that metrics are measured on: all of an evaluation, or the newest of training."""

from collections import deque
from typing import Any, Deque, Dict, List, Optional, Sequence

import numpy as np

from cluster.errors import TrainingError

MOST = 100_000_000  # of an evaluation


class AllExamples:
    """The columns of every example so far. A string takes 8 bytes for each example, and its own length once."""

    def __init__(self, columns: int):
        self._chunks: List[List[np.ndarray]] = [[] for _ in range(columns)]
        self._strings: Dict[Any, Any] = {}
        self._length = 0

    def add(self, columns: Sequence[np.ndarray]) -> None:
        """Add a batch.

        Raises:
          TrainingError: these are more than ``MOST`` examples in all.
        """
        self._length += max((len(each) for each in columns), default=0)
        if self._length > MOST:
            raise TrainingError(
                f"evaluation: expected at most {MOST:,} examples for metrics, found more; set train.evaluate_batches"
            )
        for chunks, each in zip(self._chunks, columns):
            chunks.append(self._shared(each) if each.dtype == object else each)

    def _shared(self, strings: np.ndarray) -> np.ndarray:
        shared = np.empty(len(strings), object)
        shared[:] = [self._strings.setdefault(each, each) for each in strings]
        return shared

    def columns(self) -> List[np.ndarray]:
        """Return each column, [n]."""
        return [np.concatenate(chunks) if chunks else np.zeros(0) for chunks in self._chunks]


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
