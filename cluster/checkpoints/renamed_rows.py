"""Give new embedding tables the rows of other tables in a checkpoint, a part at a time.

A checkpoint has the ids of rows. So rows get the keys that belong to their table's name here. A row keeps nothing but
its value: it counts as used by no update yet, and its slots have their first values.
"""

from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from cluster.checkpoints.saved_tables import by_server
from cluster.checkpoints.stored_tables import StoredTable
from cluster.runtime.tf_compat import tf
from cluster.tables import row_keys
from cluster.tables.store import Store

_COLUMNS = {"ids": tf.int64, "tables": tf.int32, "used": tf.int32, "rows": tf.float32}


class Round(NamedTuple):
    """One reading of the parts of a store in a checkpoint.

    ``numbers``: of tables there, with the number of the table here that gets their rows. ``limits``: by the same
    numbers, steps without its id after which a row had expired; 0 for never.
    """

    store: str
    parts: int
    numbers: Dict[int, int]
    limits: Dict[int, int]


def rounds(sources: Mapping[int, StoredTable]) -> List[Round]:
    """Return what to read, each store as seldom as possible.

    Args:
      sources: by the number of a table here, the stored one that gives its rows. Several may have the same.
    """
    found: List[Round] = []
    for number, stored in sources.items():
        fitting = [each for each in found if each.store == stored.store and stored.number not in each.numbers]
        if not fitting:
            fitting = [Round(stored.store, stored.parts, {}, {})]
            found += fitting
        fitting[0].numbers[stored.number] = number
        fitting[0].limits[stored.number] = stored.expire
    return found


class RenamedRows:
    """The operation that gives the stores of one kind rows from a checkpoint, on the current device.

    Args:
      path: placeholder of the checkpoint's prefix.
    """

    def __init__(self, stores: Sequence[Store], path: Any):
        self.tables = [table.name for table in stores[0].all_tables]
        self._names, self._updates = tf.placeholder(tf.string, [None]), tf.placeholder(tf.int64, [])
        self._numbers, self._limits = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int64, [None])
        read = tf.raw_ops.RestoreV2(
            prefix=path, tensor_names=self._names, shape_and_slices=[""] * len(_COLUMNS),
            dtypes=list(_COLUMNS.values()),
        )  # fmt: skip
        ids, stored, used, rows = read
        for column in (ids, stored, used):
            column.set_shape([None])
        rows.set_shape([None, stores[0].width])
        tables = tf.where(self._expired(stored, used), -tf.ones_like(stored), tf.gather(self._numbers, stored))
        is_wanted = tables >= 0
        ids, tables, rows = (tf.boolean_mask(each, is_wanted) for each in (ids, tables, rows))
        salts = tf.constant([row_keys.salt(name) for name in self.tables], tf.int64)
        shares = by_server(ids, tables, [tf.zeros_like(tables), rows], salts, len(stores))
        self._load = tf.group(*[store.put(*share) for store, *share in zip(stores, *shares)])
        self._counts = [store.places.count for store in stores]

    def _expired(self, stored: Any, used: Any) -> Any:
        limits = tf.gather(self._limits, stored)
        return (limits > 0) & (self._updates + 1 - tf.cast(used, tf.int64) > limits)

    def loads(self, reader: Any, sources: Mapping[str, StoredTable]) -> Iterator[Tuple[Any, Dict[Any, Any]]]:
        """Yield the operation for each part, and what it is fed but for the path.

        Args:
          sources: the stored table of each chosen one of ``tables``.
        """
        numbered = {number: sources[name] for number, name in enumerate(self.tables) if name in sources}
        for each in rounds(numbered):
            there = range(len(reader.get_tensor(f"{each.store}/tables")))
            feed = {
                self._updates: reader.get_tensor(f"{each.store}/updates"),
                self._numbers: [each.numbers.get(number, -1) for number in there],
                self._limits: [each.limits.get(number, 0) for number in there],
            }
            for part in reversed(range(each.parts)):  # of an id in several parts the last row counts
                yield self._load, {**feed, self._names: [f"{each.store}/part_{part}/{name}" for name in _COLUMNS]}

    def size(self, session: Any) -> int:
        """Return how many rows the stores have."""
        return int(sum(session.run(self._counts)))
