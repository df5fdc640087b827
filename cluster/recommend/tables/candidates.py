"""Ids without a row that training has looked up: the table of each id, and the number of steps that used the id.

Two hash tables, the younger and the older *generation*, store these ids. When the younger one is full, the older one is
emptied and becomes the younger one. So the memory is bounded. An id is forgotten only if no step uses it while a whole
generation fills. The older generation is searched only for ids that are not in the younger one.
"""

from typing import Any, NamedTuple, Sequence, Tuple

from cluster.recommend.tables.row_keys import refuse_collisions
from cluster.runtime.server_state import count_from_zero
from cluster.runtime.tensors import cond, where_true
from cluster.runtime.tf_compat import tf

_NOBODY = -1
_COUNTS = 1 << 32  # an entry is the number of its table, and so many times its count


class Candidate(NamedTuple):
    """The stored tables and counts of n ids.

    ``tables``: the number of each id's table, int32 [n]; -1 for an unknown id. ``counts``: the number of steps that
    used each id, int64 [n].
    """

    tables: Any
    counts: Any


class Candidates:
    """The candidates (ids without a row) of one store, in two generations, created on the current device.

    A key represents each id; see ``row_keys``.

    Args:
      name: the name of the store.
      size: the number of ids in a full generation.
      counts: whether to count the steps that used each id.
      names: the names of all tables, in the order of their numbers.
    """

    def __init__(self, name: str, size: int, counts: bool, names: Sequence[str]):
        self._size, self.counts, self._names = size, counts, names
        self._tables = [
            tf.raw_ops.MutableHashTableV2(
                key_dtype=tf.int64, value_dtype=tf.int64, shared_name=f"{name}/candidates_{index}"
            )
            for index in range(2)
        ]
        self.turn = count_from_zero(f"{name}/generations")  # its parity is the index of the younger generation

    def of(self, keys: Any) -> Candidate:
        """Return the entries of the ids with ``keys`` [n]."""
        is_first = tf.equal(self._younger(), 0)
        younger = self._find_if(is_first, keys)
        found = cond(
            tf.reduce_any(younger < 0),
            lambda: tf.where(younger < 0, self._find_if(tf.logical_not(is_first), keys), younger),
            lambda: tf.identity(younger),
        )
        tables = tf.where(found < 0, found, found % _COUNTS)
        return Candidate(tf.cast(tables, tf.int32), tf.maximum(found, 0) // _COUNTS)

    def _find_if(self, is_first: Any, keys: Any) -> Any:
        """Return what the first generation has of ids [n], or else the second one."""
        none = tf.constant(_NOBODY, tf.int64)

        def find(table: Any) -> Any:
            found = tf.raw_ops.LookupTableFindV2(table_handle=table, keys=keys, default_value=none)
            return tf.reshape(found, [-1])

        return cond(is_first, lambda: find(self._tables[0]), lambda: find(self._tables[1]))

    def note(self, keys: Any, tables: Any) -> Any:
        """Make the operation that adds the unknown keys among ``keys`` [n], with their ``tables`` [n]."""
        # Without counts an entry is always the same. Ids of two tables with one key are refused once it has its row.
        if not self.counts:
            return self.write(keys, tables, tf.zeros_like(keys))
        known = self.of(keys)
        is_new = known.tables < 0
        held = tf.where(is_new, tables, known.tables)
        with tf.control_dependencies([refuse_collisions(keys, held, tables, self._names)]):
            places = where_true(is_new)
            keys, tables = tf.gather(keys, places), tf.gather(tables, places)
        return self.write(keys, tables, tf.zeros_like(keys))

    def write(self, keys: Any, tables: Any, counts: Any) -> Any:
        """Make the operation that writes ``tables`` and ``counts`` of ``keys``, [n] each, to the younger generation."""
        values = tf.cast(tables, tf.int64) + counts * _COUNTS

        def insert(table: Any) -> Any:
            inserted = tf.raw_ops.LookupTableInsertV2(table_handle=table, keys=keys, values=values)
            with tf.control_dependencies([inserted]):
                return tf.constant(True)

        is_first = tf.equal(self._younger(), 0)
        return cond(is_first, lambda: insert(self._tables[0]), lambda: insert(self._tables[1])).op

    def age(self) -> Any:
        """Make the operation that swaps the two generations if the younger one is full.

        The older generation is emptied and becomes the younger one.
        """
        sizes = tf.stack([tf.raw_ops.LookupTableSizeV2(table_handle=each) for each in self._tables])
        return cond(tf.gather(sizes, self._younger()) > self._size, self._swap, lambda: tf.constant(0, tf.int64)).op

    def _swap(self) -> Any:
        younger = self._younger()
        kept = [self._keep_if(table, tf.equal(younger, index)) for index, table in enumerate(self._tables)]
        with tf.control_dependencies(kept):
            return tf.assign_add(self.turn, 1)

    def _keep_if(self, table: Any, condition: Any) -> Any:
        return cond(condition, lambda: tf.constant(True), lambda: _emptied(table)).op

    def forget(self) -> Any:
        """Make the operation that empties both generations."""
        return tf.group(*[_emptied(table).op for table in self._tables])

    def all(self) -> Tuple[Any, Candidate]:
        """Return all keys, int64 [n], and their entries. A key may occur twice; then its later entry is valid."""
        both = [tf.raw_ops.LookupTableExportV2(table_handle=t, Tkeys=tf.int64, Tvalues=tf.int64) for t in self._tables]
        pairs = [tf.reshape(tf.stack([each.keys, each.values], 1), [-1, 2]) for each in both]
        is_first = tf.equal(self._younger(), 0)
        keys, values = tf.unstack(
            cond(is_first, lambda: tf.concat(pairs[::-1], 0), lambda: tf.concat(pairs, 0)), num=2, axis=1
        )
        return keys, Candidate(tf.cast(values % _COUNTS, tf.int32), values // _COUNTS)

    def _younger(self) -> Any:
        return tf.cast(self.turn.read_value() % 2, tf.int32)


def _emptied(table: Any) -> Any:
    nothing = tf.zeros([0], tf.int64)
    with tf.control_dependencies([tf.raw_ops.LookupTableImportV2(table_handle=table, keys=nothing, values=nothing)]):
        return tf.constant(True)
