"""Places of rows in a store: found by their keys, taken by new rows, and free again once rows have expired.

The index is one of two hash tables of TensorFlow. The dense table takes half the memory of the other table, but never
reuses the entry of a removed key. So a store has the dense table if its rows never expire, and otherwise the other one.
The dense table marks entries by two special keys, and accepts no rows under these keys. Ids may have these keys, too: a
small table of the other kind has the places of their rows.

New rows take places in ascending order. The place of a removed row waits in a ring until a new row takes the place.

In every lookup, a row counts as expired from the first update that passes its table's limit. The search for expired
rows only frees their memory. Each update searches a few rows, so that a search of all rows takes at most a quarter of
the shortest limit.
"""

from typing import Any, Sequence

from cluster.runtime.server_state import count_from_zero, reserve
from cluster.runtime.tensors import cond, where_true
from cluster.runtime.tf_compat import tf

NO_ROW = -1
_NO_KEY, _REMOVED = 0x3C6EF372FE94F82B, 0x1F83D9ABFB41BD6B  # what the dense table has in entries without a key
_OTHER = 0  # any other key
_FIRST_ENTRIES = 1 << 12
_LOAD = 0.8  # of the entries have keys when the dense table doubles


class Index:
    """The index of a store, from keys to the places of rows, created on the current device.

    Args:
      name: the name of the store.
      removes: whether ``remove`` is ever called.
    """

    def __init__(self, name: str, removes: bool):
        self._is_dense = not removes
        self._dtype = tf.int32 if self._is_dense else tf.int64
        self._name = f"{name}/dense_index"
        self._sparse = _sparse(f"{name}/marks" if self._is_dense else f"{name}/index", self._dtype)

    def find(self, keys: Any) -> Any:
        """Return the places of the rows of ``keys`` [n], int64 [n]; ``NO_ROW`` for a key without a row."""
        if not self._is_dense:
            return self._find_in(self._sparse, keys)
        is_mark = _are_marks(keys)
        return cond(
            tf.reduce_any(is_mark),
            lambda: tf.where(is_mark, self._find_in(self._sparse, keys), self._find_dense(_without(is_mark, keys))),
            lambda: self._find_dense(keys),
        )

    def _find_dense(self, keys: Any) -> Any:
        return self._find_in(self._dense(keys), keys)

    def _find_in(self, table: Any, keys: Any) -> Any:
        none = tf.constant(NO_ROW, self._dtype)
        found = tf.raw_ops.LookupTableFindV2(table_handle=table, keys=keys, default_value=none)
        return tf.cast(tf.reshape(found, [-1]), tf.int64)

    def insert(self, keys: Any, places: Any) -> Any:
        """Make the operation that stores ``places``, int64 [n], as the places of the rows of ``keys`` [n]."""
        places = tf.cast(places, self._dtype)
        if not self._is_dense:
            return _insert(self._sparse, keys, places)
        is_mark = _are_marks(keys)
        marks, others = where_true(is_mark), where_true(tf.logical_not(is_mark))
        into = ((self._sparse, marks), (self._dense(keys), others))
        return tf.group(*[_insert(table, tf.gather(keys, some), tf.gather(places, some)) for table, some in into])

    def remove(self, keys: Any) -> Any:
        """Make the operation that removes ``keys`` [n] from the index; keys that it lacks are ignored."""
        return tf.raw_ops.LookupTableRemoveV2(table_handle=self._sparse, keys=keys)

    def empty(self) -> Any:
        """Make the operation that removes all keys.

        The dense table cannot be emptied. So the operation destroys it, and the next operation that uses the index
        creates another dense table.
        """
        nothing = tf.zeros([0], tf.int64)
        places = tf.zeros([0], self._dtype)
        emptied = tf.raw_ops.LookupTableImportV2(table_handle=self._sparse, keys=nothing, values=places)
        if not self._is_dense:
            return emptied
        return tf.group(emptied, tf.raw_ops.DestroyResourceOp(resource=self._dense(nothing), ignore_lookup_error=True))

    def _dense(self, needed: Any) -> Any:
        """Return the dense table, for an operation that needs this first.

        A step that asked for it when it began would still ask for that one after ``empty``, and fail.
        """
        with tf.control_dependencies([needed]):
            return _dense(self._name)


def _are_marks(keys: Any) -> Any:
    no_key, removed = (tf.equal(keys, tf.constant(mark, tf.int64)) for mark in (_NO_KEY, _REMOVED))
    return tf.logical_or(no_key, removed)


def _without(is_mark: Any, keys: Any) -> Any:
    return tf.where(is_mark, tf.fill(tf.shape(keys), tf.constant(_OTHER, tf.int64)), keys)


def _insert(table: Any, keys: Any, places: Any) -> Any:
    return tf.raw_ops.LookupTableInsertV2(table_handle=table, keys=keys, values=places)


def _sparse(name: str, dtype: Any) -> Any:
    return tf.raw_ops.MutableHashTableV2(key_dtype=tf.int64, value_dtype=dtype, shared_name=name)


def _dense(name: str) -> Any:
    with tf.container("tables"):
        return tf.raw_ops.MutableDenseHashTableV2(
            empty_key=tf.constant(_NO_KEY, tf.int64),
            deleted_key=tf.constant(_REMOVED, tf.int64),
            value_dtype=tf.int32,
            shared_name=name,
            initial_num_buckets=_FIRST_ENTRIES,
            max_load_factor=_LOAD,
        )


FREE = -1  # as the time of a row's last update


class RowPlaces:
    """The places of a store's rows, handed out to new rows; created on the current device.

    Args:
      name: the name of the store.
      reserved: the number of places, int32.
      used: the number of the update that last changed the row at each place, int32 [capacity]; ``FREE`` for no row.
      full: the text of the error for a store without free places.
      returns: whether ``give_back`` is ever called.
    """

    def __init__(self, name: str, reserved: Any, used: Any, full: str, returns: bool):
        self._used, self._full, self._returns = used, full, returns
        self._capacity = tf.raw_ops.Shape(input=used, out_type=tf.int64)[0]  # not what it was declared with
        self.count = count_from_zero(f"{name}/count")  # places that were ever taken: the first so many
        self.variables = [self.count]
        if returns:
            self._ring = reserve(f"{name}/free", [], tf.int32, reserved)
            self._given, self._retaken = (count_from_zero(f"{name}/{each}") for each in ("given_back", "retaken"))
            self.variables += [self._ring, self._given, self._retaken]

    def take(self, number: Any) -> Any:
        """Return ``number`` places, int64 [number], for new rows; the caller writes the rows and their columns."""
        if not self._returns:
            return self._take_new(number)
        free = self._given.read_value() - self._retaken.read_value()
        again = tf.minimum(number, tf.maximum(free, 0))
        end = tf.identity(tf.assign_add(self._retaken, again, use_locking=True))
        old = tf.cast(tf.gather(self._ring, tf.range(end - again, end) % self._capacity), tf.int64)
        # Two steps may be here at once, if one of them was given up. Rather no step than a row of two ids.
        all_free = tf.debugging.assert_equal(
            tf.gather(self._used, old), tf.fill(tf.shape(old), FREE), message="two rows were assigned the same place"
        )
        with tf.control_dependencies([all_free]):
            return tf.concat([old, self._take_new(number - again)], 0)

    def _take_new(self, number: Any) -> Any:
        # In one operation: a step that was given up may leave TensorFlow's mutex open.
        end = tf.identity(tf.assign_add(self.count, number, use_locking=True))
        fits = tf.debugging.assert_less_equal(end, self._capacity, message=self._full)
        with tf.control_dependencies([fits]):
            return tf.range(end - number, end)

    def give_back(self, places: Any) -> Any:
        """Make the operation that frees ``places``, int64 [n], for new rows; no id has a row there any more."""
        size = tf.size(places, out_type=tf.int64)
        marked = tf.scatter_update(self._used, places, tf.fill([size], FREE))
        end = self._given.read_value() + size
        with tf.control_dependencies([marked]):
            ring = tf.scatter_update(self._ring, tf.range(end - size, end) % self._capacity, tf.cast(places, tf.int32))
        with tf.control_dependencies([ring]):
            return tf.assign(self._given, end).op


_LEAST = 256  # rows that an update looks through


class Expiry:
    """The expiry of the rows of one store.

    Args:
      limits: for each table, the number of updates without an id after which the id's row expires; 0 for never.

    Attributes:
      happens: whether the rows of any table expire.
    """

    def __init__(self, limits: Sequence[int]):
        self._limits = list(limits)
        self.happens = any(self._limits)

    def expired(self, tables: Any, used: Any, update: Any) -> Any:
        """Return whether each of n rows has expired at the update with the number ``update``, bool [n].

        Args:
          tables: the number of each row's table, [n].
          used: the number of the update that last changed each row, [n].
        """
        limits = tf.gather(tf.constant(self._limits, tf.int64), tables)
        return (limits > 0) & (update - tf.cast(used, tf.int64) > limits)

    def next_places(self, count: Any, update: Any) -> Any:
        """Return the places among the first ``count`` that ``update`` searches for expired rows, int64 [n]."""
        number = _LEAST + 4 * count // min(each for each in self._limits if each)
        return (update * number + tf.range(tf.minimum(number, count))) % tf.maximum(count, 1)
