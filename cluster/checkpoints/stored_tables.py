"""Find the embedding tables in a checkpoint, and read their rows into this process, part by part.

``saved_tables`` has the form in which a checkpoint holds them.
"""

from typing import Any, Dict, Iterator, NamedTuple, Sequence

import numpy as np

from cluster.runtime.tf_compat import tf
from cluster.tables.frozen import FrozenTable

NOT_IN_CHECKPOINT = "not found in checkpoint"  # TensorFlow's words for a variable, by which callers know the error


class StoredTable(NamedTuple):
    """One table in a checkpoint: with others in a ``store``, ``embeddings_16``, as the one of ``number``.

    ``expire``: steps without its id after which a row expired in the run that wrote the checkpoint; 0 for never.
    """

    name: str
    width: int
    store: str
    number: int
    parts: int
    expire: int = 0


def stored_tables(reader: Any) -> Dict[str, StoredTable]:
    """Return the tables of a checkpoint, by name."""
    names = reader.get_variable_to_shape_map()
    stores = sorted(name[: -len("/tables")] for name in names if name.endswith("/tables"))
    found: Dict[str, StoredTable] = {}
    for store in stores:
        if store.startswith("embeddings_") and {f"{store}/parts", f"{store}/updates"} <= set(names):
            width, parts = int(store.rpartition("_")[2]), int(reader.get_tensor(f"{store}/parts"))
            tables = reader.get_tensor(f"{store}/tables")
            limits = reader.get_tensor(f"{store}/expire") if f"{store}/expire" in names else np.zeros(len(tables))
            for number, (name, limit) in enumerate(zip(tables, limits)):
                found[name.decode()] = StoredTable(name.decode(), width, store, number, parts, int(limit))
    return found


class StoredRows:
    """The rows of a table that count: of each id the last one, unless that has expired.

    Args:
      expire: steps without its id after which a row expires; 0 for never.

    ``ids``: int64 [n], in the order of ``parts``.
    """

    def __init__(self, reader: Any, table: StoredTable, expire: int):
        self._reader, self._table = reader, table
        self._updates = int(reader.get_tensor(f"{table.store}/updates"))
        numbers = range(table.parts)
        places = [np.flatnonzero(self._column(number, "tables") == table.number) for number in numbers]
        ids = [self._column(number, "ids")[some] for number, some in zip(numbers, places)]
        counts = np.split(_is_last(ids), np.cumsum([len(each) for each in ids])[:-1])
        self._places = [self._live(number, some[last], expire) for number, some, last in zip(numbers, places, counts)]
        self.ids = np.concatenate(
            [np.zeros([0], np.int64), *(self._column(n, "ids")[p] for n, p in zip(numbers, self._places))]
        )

    def parts(self) -> Iterator[np.ndarray]:
        """Yield the rows, float32 [some, width], a part of the checkpoint at a time."""
        for number, places in enumerate(self._places):
            yield self._column(number, "rows")[places]

    def _live(self, number: int, places: np.ndarray, expire: int) -> np.ndarray:
        """Return those of the places in a part whose rows have not expired."""
        if not expire:
            return places
        return places[self._updates + 1 - self._column(number, "used")[places].astype(np.int64) <= expire]

    def _column(self, number: int, name: str) -> np.ndarray:
        found: np.ndarray = self._reader.get_tensor(f"{self._table.store}/part_{number}/{name}")
        return found


def _is_last(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return for each id of all parts, in order, whether it comes no more after, as bools."""
    ids = np.concatenate([np.zeros([0], np.int64), *parts])
    _, before_end = np.unique(ids[::-1], return_index=True)
    found = np.zeros(len(ids), bool)
    found[len(ids) - 1 - before_end] = True
    return found


def load_frozen(session: Any, reader: Any, tables: Sequence[FrozenTable]) -> None:
    """Give tables the rows that a checkpoint has for them.

    Raises:
      tf.errors.NotFoundError: it has no table of that name.
      tf.errors.InvalidArgumentError: it has one of another width.
    """
    stored = stored_tables(reader)
    pairs = [(each, _found(stored, each.table)) for each in tables]
    for each, found in pairs:
        rows = StoredRows(reader, found, each.table.expire)
        each.load(session, rows.ids, rows.parts())


def _found(stored: Dict[str, StoredTable], table: Any) -> StoredTable:
    found = stored.get(table.name)
    if found is None:
        raise tf.errors.NotFoundError(None, None, f"Key {table.name} {NOT_IN_CHECKPOINT} (an embedding table)")
    if found.width != table.width:
        text = f"{table.name}: expected rows of {table.width} numbers, found {found.width}"
        raise tf.errors.InvalidArgumentError(None, None, text)
    return found
