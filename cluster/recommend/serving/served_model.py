"""The rows and variables of a served model in numpy, which deltas change.

The first value of a row is the number that ``cluster.recommend.tables.initializers`` gives in a graph.
"""

import hashlib
import math
import os
import threading
from typing import Any, Dict, Mapping, Tuple, Union

import numpy as np

from cluster.errors import DeltaError
from cluster.recommend.serving.delta_file import NOTHING, WHOLE, Delta, TableDelta, read, refuse_other
from cluster.recommend.serving.row_index import RowIndex

SPARE = 8  # an array of rows that must grow gets an eighth more than it needs


class ServedModel:
    """The rows and variables of a served model, for programs without TensorFlow.

        model = ServedModel("deltas/0..800-1f3a9c0d.npz")
        vectors = model.rows("user", ids)               # [n] -> [n, width]
        kernel = model.variables["dense/kernel"]
        delta = next_delta("deltas", model.version)     # None while no file follows
        if delta:
            model.apply(delta)

    Several threads may use a model, and one of them calls ``apply``. Each call of ``rows`` sees one version.

    Args:
      path: the delta of a whole model, whose name begins with ``0..``.

    Attributes:
      version: the version of the model, which the next delta must follow.
      variables: the variables by name; a new mapping for each version.

    Raises:
      DeltaError, OSError: as for ``apply``.
    """

    def __init__(self, path: "Union[str, os.PathLike[str]]"):
        self.version, self.variables = NOTHING, {}  # type: str, Dict[str, np.ndarray]
        self._tables: Dict[str, _Rows] = {}
        self._lock = threading.Lock()
        self.apply(path)

    @property
    def sizes(self) -> Mapping[str, int]:
        """Return the number of rows of each table, by name."""
        return {name: len(each.index.ids) for name, each in self._tables.items()}

    def rows(self, table: str, ids: np.ndarray) -> np.ndarray:
        """Return the rows of ``ids`` [n], float32 [n, width]; for an id without a row, its first value.

        A string id is the number ``farmhash.fingerprint64(id) % (2**63 - 1)``. Raises KeyError for an unknown table.
        """
        with self._lock:
            return self._tables[table].of(np.asarray(ids, np.int64))

    def apply(self, path: "Union[str, os.PathLike[str]]") -> None:
        """Change the model to the version of the delta in the file at ``path``.

        Raises:
          DeltaError: the file is damaged, or does not follow the model's version; the model has not changed.
          OSError: the file cannot be read.
        """
        delta = read(path)
        refuse_other(delta, self.version, {name: each.values.shape[1] for name, each in self._tables.items()})
        for name, each in self._tables.items():
            if each.initializer != delta.tables[name].initializer:
                raise DeltaError(f"{delta.name}: {name!r} has another initializer, so other first values; {WHOLE}")
        indices = indices_with(delta, {name: each.index for name, each in self._tables.items()})
        with self._lock:
            tables = {name: self._tables.get(name) or _Rows(name, each) for name, each in delta.tables.items()}
            for name, rows in tables.items():
                rows.make_room(indices[name][0].end)  # before anything changes: memory may be short
            for name, rows in tables.items():
                rows.change(delta.tables[name].rows, *indices[name])
            self._tables = tables
            self.variables = {**self.variables, **delta.variables}
            self.version = delta.version


class _Rows:
    """The rows of one table, with room for more."""

    def __init__(self, name: str, of: TableDelta):
        self._name, self.initializer = name, of.initializer
        self.index, self.values = RowIndex(), np.zeros([0, of.rows.shape[1]], np.float32)

    def of(self, ids: np.ndarray) -> np.ndarray:
        places = self.index.find(ids)
        found = np.empty([len(ids), self.values.shape[1]], np.float32)
        known = places >= 0
        found[known] = self.values[places[known]]
        found[~known] = first_rows(self._name, self.initializer, ids[~known], found.shape[1])
        return found

    def make_room(self, end: int) -> None:
        """Make room for rows at all places below ``end``."""
        if end > len(self.values):
            grown = np.zeros([end + end // SPARE, self.values.shape[1]], np.float32)
            grown[: len(self.values)] = self.values
            self.values = grown

    def change(self, rows: np.ndarray, index: RowIndex, places: np.ndarray) -> None:
        """Put ``rows`` [n, width] at ``places`` [n], and use ``index`` from then on."""
        self.values[places], self.index = rows, index


def indices_with(delta: Delta, indices: Mapping[str, RowIndex]) -> Dict[str, Tuple[RowIndex, np.ndarray]]:
    """Return for each table its index with the delta, and the places of the delta's rows.

    Raises:
      DeltaError: the delta does not fit the tables.
    """
    found = {}
    for name, each in delta.tables.items():
        found[name] = indices.get(name, RowIndex()).changed(each.ids, each.removed)
        size = len(found[name][0].ids)
        if size != each.size:
            raise DeltaError(f"{delta.name}: expected {each.size} rows of {name!r} then, found {size}; {WHOLE}")
    return found


_STEP = 0x9E3779B97F4A7C15


def first_rows(table: str, initializer: Tuple[str, float, float, int], ids: np.ndarray, width: int) -> np.ndarray:
    """Return the first values of the rows of ``ids`` [n], float32 [n, width].

    Args:
      table: the name of the table.
      initializer: kind, two numbers and seed, as in a delta.
    """
    kind, first, second, seed = initializer
    low, high = np.float32(first), np.float32(second)
    if kind == "constant":
        return np.full([len(ids), width], low)
    with np.errstate(over="ignore"):
        keys = _mixed(ids.astype(np.int64).view(np.uint64) + _salt(table))
        start = _mixed(keys ^ _salt(f"{table} {seed}"))
        places = np.array([(column + 1) * _STEP % (1 << 64) for column in range(width)], np.uint64)
        numbers = _mixed(start[:, np.newaxis] + places)
    if kind == "uniform":
        half = numbers[:, : (width + 1) // 2]
        bits = np.concatenate([half >> np.uint64(40), half & np.uint64((1 << 24) - 1)], 1)[:, :width]
        return low + (high - low) * (bits.astype(np.float32) * np.float32(2.0**-24))
    total: Any = sum((numbers >> np.uint64(place)) & np.uint64(0xFFFF) for place in (0, 16, 32, 48))
    deviation = math.sqrt(4 * (2.0**32 - 1) / 12)
    normal: np.ndarray = (total.astype(np.float32) - np.float32(2 * (2.0**16 - 1))) * np.float32(1 / deviation)
    return low + high * normal


def _salt(name: str) -> np.uint64:
    return np.uint64(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little"))


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """Return SplitMix64's hash of each of ``numbers``, uint64."""
    numbers = (numbers ^ numbers >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ numbers >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return numbers ^ numbers >> np.uint64(31)
