"""Places of rows by their ids: a sorted list of ids, with the place of each row in an array that holds the rows."""

from typing import NamedTuple, Tuple

import numpy as np

from cluster.errors import DeltaError


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
        kept = np.ones(len(self.ids), bool)
        kept[np.searchsorted(self.ids, removed)] = False
        old = RowIndex(self.ids[kept], self.places[kept])
        new, spare = ids[places < 0], np.concatenate([self.free, lost])
        taken = np.concatenate([spare, np.arange(self.end, self.end + max(0, len(new) - len(spare)))])[: len(new)]
        places[places < 0] = taken
        at = np.searchsorted(old.ids, new)
        made = RowIndex(
            np.insert(old.ids, at, new), np.insert(old.places, at, taken), spare[len(new) :],
            max(self.end, int(taken.max()) + 1 if len(taken) else 0),
        )  # fmt: skip
        return made, places
