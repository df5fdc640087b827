"""Find the embedding tables in a checkpoint, and read their rows into this process, part by part.

``saved_tables`` has the form in which a checkpoint holds them.
"""

from typing import Any, Dict, Iterator, NamedTuple, Sequence

import numpy as np

from cluster.runtime.tf_compat import tf
from cluster.tables.frozen import FrozenTable

NOT_IN_CHECKPOINT = "not found in checkpoint"  # TensorFlow's words for a variable, by which callers know the error


class StoredTable(NamedTuple):
    """One table in a checkpoint: with others in a ``store``, ``embeddings_16``, as the one of ``number``."""

    name: str
    width: int
    store: str
    number: int
    parts: int


def stored_tables(reader: Any) -> Dict[str, StoredTable]:
    """Return the tables of a checkpoint, by name."""
    names = reader.get_variable_to_shape_map()
    stores = sorted(name[: -len("/tables")] for name in names if name.endswith("/tables"))
    found: Dict[str, StoredTable] = {}
    for store in stores:
        if store.startswith("embeddings_") and {f"{store}/parts", f"{store}/updates"} <= set(names):
            width, parts = int(store.rpartition("_")[2]), int(reader.get_tensor(f"{store}/parts"))
            for number, name in enumerate(reader.get_tensor(f"{store}/tables")):
                found[name.decode()] = StoredTable(name.decode(), width, store, number, parts)
    return found


def ids_of(reader: Any, table: StoredTable) -> np.ndarray:
    """Return the ids of all rows of a table, int64 [n], in the order of ``rows_of``."""
    ids = [reader.get_tensor(f"{_part(table, part)}/ids")[_is_of(reader, table, part)] for part in range(table.parts)]
    return np.concatenate([np.zeros([0], np.int64), *ids])


def rows_of(reader: Any, table: StoredTable) -> Iterator[np.ndarray]:
    """Yield the rows of a table, float32 [some, width], a part of the checkpoint at a time."""
    for part in range(table.parts):
        yield reader.get_tensor(f"{_part(table, part)}/rows")[_is_of(reader, table, part)]


def _part(table: StoredTable, part: int) -> str:
    return f"{table.store}/part_{part}"


def _is_of(reader: Any, table: StoredTable, part: int) -> np.ndarray:
    of_tables: np.ndarray = reader.get_tensor(f"{_part(table, part)}/tables") == table.number
    return of_tables


def load_frozen(session: Any, reader: Any, tables: Sequence[FrozenTable]) -> None:
    """Give tables the rows that a checkpoint has for them.

    Raises:
      tf.errors.NotFoundError: it has no table of that name.
      tf.errors.InvalidArgumentError: it has one of another width.
    """
    stored = stored_tables(reader)
    pairs = [(each, _found(stored, each.table)) for each in tables]
    for each, found in pairs:
        each.load(session, ids_of(reader, found), rows_of(reader, found))


def _found(stored: Dict[str, StoredTable], table: Any) -> StoredTable:
    found = stored.get(table.name)
    if found is None:
        raise tf.errors.NotFoundError(None, None, f"Key {table.name} {NOT_IN_CHECKPOINT} (an embedding table)")
    if found.width != table.width:
        text = f"{table.name}: expected rows of {table.width} numbers, found {found.width}"
        raise tf.errors.InvalidArgumentError(None, None, text)
    return found
