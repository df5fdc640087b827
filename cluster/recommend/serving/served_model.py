"""The rows and variables of a served model in numpy, which deltas change, and the places of rows by their ids."""

import os
import threading
from typing import Dict, Mapping, NamedTuple, Tuple, Union

import numpy as np

from cluster.errors import DeltaError
from cluster.protocol.checkpoint_files import NO_VERSION
from cluster.recommend.serving.delta_file import WHOLE, Delta, TableDelta, read, refuse_other
from cluster.recommend.tables.splitmix import first_rows

SPARE = 8  # an array of rows that must grow gets an eighth more than it needs


class RowIndex(NamedTuple):
    """The places of rows by id; an index never changes.

    ``ids`` is int64 [n], ascending; ``places`` int64 [n]. ``free`` is int64: places below ``end`` without a row. All
    places are below ``end``.
    """

    ids: np.ndarray = np.zeros([0], np.int64)
    places: np.ndarray = np.zeros([0], np.int64)
    free: np.ndarray = np.zeros([0], np.int64)
    end: int = 0

    def find(self, ids: np.ndarray) -> np.ndarray:
        """Return the places of ``ids`` [m], int64 [m]; -1 for an id without a row."""
        if not len(self.ids):
            return np.full(len(ids), -1, np.int64)
        at = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[at] == ids, self.places[at], -1)

    def changed(self, ids: np.ndarray, removed: np.ndarray) -> "Tuple[RowIndex, np.ndarray]":
        """Return the index without the ids ``removed`` and with ``ids``, and the places of the rows of ``ids``.

        Args:
          ids, removed: int64, ascending, with no id in common. Those of ``ids`` that have no place get one.

        Raises:
          DeltaError: an id that is to be removed has no row.
        """
        places = self.find(ids)
        if not len(removed) and (places >= 0).all():
            return self, places
        lost = self.find(removed)
        if (lost < 0).any():
            raise DeltaError(f"expected a row of the id {removed[lost < 0][0]}, which is to be removed, found none")
        at = np.searchsorted(self.ids, removed)
        old = RowIndex(np.delete(self.ids, at), np.delete(self.places, at))
        new, spare = ids[places < 0], np.concatenate([self.free, lost])
        taken = np.concatenate([spare, np.arange(self.end, self.end + max(0, len(new) - len(spare)))])[: len(new)]
        places[places < 0] = taken
        at = np.searchsorted(old.ids, new)
        made = RowIndex(
            np.insert(old.ids, at, new), np.insert(old.places, at, taken), spare[len(new) :],
            max(self.end, int(taken.max()) + 1 if len(taken) else 0),
        )  # fmt: skip
        return made, places


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
        self.version, self.variables = NO_VERSION, {}  # type: str, Dict[str, np.ndarray]
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
