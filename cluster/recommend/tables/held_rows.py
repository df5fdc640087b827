"""Rows in the memory of one parameter server, with further columns for each row; an index finds rows by their keys.

    index       key -> place                                 see ``cluster.recommend.tables.row_places``
    rows        a row's value                                float32 [capacity, width]
    slots       what the optimizer keeps for a row           float32 [capacity, slots * width]
    keys        row -> key                                   int64 [capacity]
    tables      row -> number of its table                   uint8 [capacity]; int32 where there are many
    used        number of the last update of a row           int32 [capacity]
    updates     how many updates the optimizer has made      int64
    places      the taken and the free places of rows        see ``cluster.recommend.tables.row_places``

``capacity`` is the number of rows that fit into the server's memory. Creating a variable does not write to it. So Linux
allocates its memory page by page when rows are written, and the memory of a table grows with the number of its ids.
"""

from functools import partial
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from cluster.recommend.tables.initializers import first_values
from cluster.recommend.tables.lookups import Table
from cluster.recommend.tables.row_floors import RowAges, RowBound, zeros
from cluster.recommend.tables.row_places import NO_ROW, Expiry, Index, RowPlaces
from cluster.runtime.server_state import MOST_ROWS, count_from_zero, reserve
from cluster.runtime.tensors import call, cond, where_true
from cluster.runtime.tf_compat import tf

NO_UPDATE, LAST_UPDATE = -1, 2**31 - 1  # before the first one; that of no run
_PART_OF_MEMORY = 0.8
_INDEX_BYTES = 48  # of an entry of the index, at most
_FEW_TABLES = 1 << 8  # that an uint8 tells apart
_MEMORY = r"(?s)MemTotal:\s*(\d+) kB.*"


class RowSlot(NamedTuple):
    """A number that an optimizer stores for each element of a row; its name and its first value."""

    name: str
    first: float


class HeldRows:
    """The rows of one store and their columns, on the current device; see ``cluster.recommend.tables.store.Store``.

    Args:
      stores: the number of stores on this server, which share its memory.
      servers: the number of servers, which share the bounds of tables.

    Attributes:
      floors: the number of the oldest update whose rows each table still has, int64 [tables]; None where only
        ``Table.expire`` lets rows go. See ``row_floors``.
    """

    def __init__(
        self, name: str, device: str, tables: Sequence[Table], slots: Sequence[RowSlot], stores: int, servers: int
    ):
        self.name, self.device, self.all_tables, self.kept = name, device, list(tables), list(slots)
        self.width = tables[0].width
        full = f"a parameter server has no memory for more rows of {', '.join(t.name for t in tables)}"
        capacity = _capacity((self.row_bytes + _INDEX_BYTES) * stores)
        self.rows = reserve(name, [self.width], tf.float32, capacity)
        self.slots = reserve(f"{name}/slots", [self.width * len(slots)], tf.float32, capacity) if slots else None
        self.keys = reserve(f"{name}/keys", [], tf.int64, capacity)
        self.tables = reserve(f"{name}/tables", [], number_type(tables), capacity)
        self.used = reserve(f"{name}/used", [], tf.int32, capacity)
        self.updates = count_from_zero(f"{name}/updates")
        self._expiry = Expiry([each.expire for each in tables])
        self._bound, self.ages = RowBound(name, tables, servers), RowAges(name, tables)
        has_floors = self._bound.happens or self.ages.happens
        self.floors: Any = zeros(f"{name}/floors", [len(tables)], tf.int64) if has_floors else None
        self._removes = self._expiry.happens or has_floors
        self._index = Index(name, removes=self._removes)
        self.places = RowPlaces(name, capacity, self.used, f"{full}; add parameter servers", self._removes)

    @property
    def variables(self) -> List[Any]:
        """Return all variables of this store."""
        columns = [self.rows, self.slots, self.keys, self.tables, self.used, self.floors]
        return [
            *[each for each in columns if each is not None],
            self.updates,
            *self.places.variables,
            *self._bound.variables,
            *self.ages.variables,
        ]

    @property
    def row_bytes(self) -> int:
        """Return the number of bytes that one row takes in all columns together."""
        return 4 * self.width * (1 + len(self.kept)) + 16

    def live_part(
        self, begin: Any, end: Any, since: Any = NO_UPDATE, until: Any = LAST_UPDATE, is_still: bool = False
    ) -> Dict[str, Any]:
        """Return, by name, the columns of the valid rows at the places from ``begin`` to before ``end``.

        The columns are keys, tables, used, rows, and slots if there are any, on the server. A row is valid if it has an
        id, has not expired, and its last update is after the update ``since`` and not after ``until``. If an update
        runs meanwhile, some values of a row may be old, but all values of a row belong to one id.

        Args:
          is_still: whether no update can run meanwhile.
        """
        with tf.device(self.device):
            places = self._changed(begin, tf.identity(end), since, until)
            if self._expiry.happens:
                live = self._unexpired(places, self.updates.read_value() + 1) >= 0
                places = tf.gather(places, where_true(live))
            kept = {"keys": self.keys, "tables": self.tables, "used": self.used, "rows": self.rows, "slots": self.slots}
            part = {name: tf.gather(each, places) for name, each in kept.items() if each is not None}
            part = part if is_still else self._of_one_id(part, places)
            return {**part, "tables": tf.cast(part["tables"], tf.int32)}

    def _of_one_id(self, part: Dict[str, Any], places: Any) -> Dict[str, Any]:
        """Return the rows whose places have not gone to another id while they were read."""
        with tf.control_dependencies(list(part.values())):
            is_its = tf.equal(self._index.find(tf.identity(part["keys"])), places)
        names = list(part)
        columns = cond(
            tf.reduce_all(is_its),
            lambda: [tf.identity(part[name]) for name in names],
            lambda: [tf.gather(part[name], where_true(is_its)) for name in names],
        )
        return dict(zip(names, columns))

    def changed_bounds(self, since: Any, until: Any, size: Any) -> Any:
        """Return the bounds, int64 [n + 1], of n ranges of places that have at most ``size`` changed rows each.

        A row has changed if its last update is after the update ``since``, and not after ``until``. The first bound is
        the place of the first changed row; the last bound is the number of all places.
        """
        with tf.device(self.device):
            count = self.places.count.read_value()
            return tf.concat([self._changed(tf.zeros_like(count), count, since, until)[::size], [count]], 0)

    def _changed(self, begin: Any, end: Any, since: Any, until: Any) -> Any:
        used = tf.slice(self.used, [begin], [end - begin])  # without a copy
        return begin + where_true((used > tf.cast(since, tf.int32)) & (used <= tf.cast(until, tf.int32)))

    def _tables_at(self, places: Any) -> Any:
        return tf.cast(tf.gather(self.tables, places), tf.int32)

    def _unexpired(self, numbers: Any, update: Any) -> Any:
        """Return the same numbers, without those of rows that have expired by an update."""
        if not self._expiry.happens:
            return numbers
        places = tf.maximum(numbers, 0)
        expired = self._expiry.expired(self._tables_at(places), tf.gather(self.used, places), update)
        return without_rows_where(expired, numbers)

    def _first_values(self, keys: Any, tables: Any) -> Any:
        return call(f"first_values {self.name}", partial(first_values, self.all_tables), keys, tables)

    def _add(self, keys: Any, tables: Any, used: Any, rows: Any = None, slots: Any = None) -> Tuple[Any, Any]:
        """Give new keys [n] rows: with these values, or else first values; return their places, and what ends it."""
        size = tf.size(keys, out_type=tf.int64)
        places = self.places.take(size)
        rows = self._first_values(keys, tables) if rows is None else rows
        numbers = tf.cast(tables, self.tables.dtype.base_dtype)
        columns = [(self.rows, rows), (self.keys, keys), (self.tables, numbers), (self.used, used)]
        if self.slots is not None:
            columns.append((self.slots, self._first_slots(size) if slots is None else slots))
        written = [tf.scatter_update(column, places, values).op for column, values in columns]
        with tf.control_dependencies([*written, *self._bound.count(tables)]):
            return places, self._index.insert(keys, places)

    def _first_slots(self, size: Any) -> Any:
        of_a_row = [slot.first for slot in self.kept for _ in range(self.width)]
        if len(set(of_a_row)) == 1:  # for which there is an operation that is quicker
            return tf.fill(tf.stack([size, len(of_a_row)]), of_a_row[0])
        return tf.tile(tf.constant([of_a_row], tf.float32), tf.stack([size, 1]))

    def _remove_old(self, update: Any, done: Any) -> Any:
        """Make the operation that removes rows by all rules of the tables once the operation ``done`` has run."""
        rules = (
            (self._expiry.happens, self._remove_expired),
            (self._bound.happens, self._remove_above_bound),
            (self.ages.happens, self._remove_unused),
        )
        for happens, remove in rules:
            with tf.control_dependencies([done]):
                done = remove(update) if happens else done
        return done

    def _remove_expired(self, update: Any) -> Any:
        """Make the operation that looks through some rows, and gives back the places of those that have expired."""
        places = self._expiry.next_places(self.places.count.read_value(), update)
        used = tf.gather(self.used, places)
        is_over = self._expiry.expired(self._tables_at(places), used, update) & (used >= 0)
        return self._remove(tf.gather(places, where_true(is_over)))

    def _remove_above_bound(self, update: Any) -> Any:
        """Make the operation that removes the oldest rows of a table that has too many, if any table has."""
        table, has_any = self._bound.fullest()

        def remove() -> Any:
            used, tables = self._used_and_tables()
            places = where_true(tf.equal(tables, tf.cast(table, tf.int32)) & (used >= 0))
            floor = self._bound.floor(table, tf.gather(used, places), update)
            over = where_true(tf.cast(tf.gather(used, places), tf.int64) < floor)
            left = tf.size(places, out_type=tf.int64) - tf.size(over, out_type=tf.int64)
            written = tf.scatter_update(self.floors, tf.expand_dims(table, 0), tf.expand_dims(floor, 0))
            with tf.control_dependencies([written, self._remove(tf.gather(places, over))]):
                return self._bound.recount(table, left)

        return cond(has_any, remove, tf.no_op)

    def _remove_unused(self, update: Any) -> Any:
        """Make the operation that removes the rows that were not used for their tables' time, if a tick is due."""
        due = self.ages.due()

        def remove() -> Any:
            floors = tf.assign(self.floors, tf.maximum(self.ages.tick(due, update), self.floors.read_value()))
            used, tables = self._used_and_tables()
            is_over = (used >= 0) & (tf.cast(used, tf.int64) < tf.gather(floors, tables))
            return self._remove(where_true(is_over))

        return cond(tf.reduce_any(due), remove, tf.no_op)

    def _used_and_tables(self) -> Tuple[Any, Any]:
        """Return the columns ``used`` and ``tables``, int32, of all places that were ever taken."""
        count = self.places.count.read_value()
        return tf.slice(self.used, [0], [count]), tf.cast(tf.slice(self.tables, [0], [count]), tf.int32)

    def _remove(self, places: Any) -> Any:
        """Make the operation that removes the rows at ``places`` [n], and gives back the places."""
        keys = tf.gather(self.keys, places)
        is_its = tf.equal(self._index.find(keys), places)  # the id may have another row by now
        removed = self._index.remove(tf.gather(keys, where_true(is_its)))
        with tf.control_dependencies([removed]):
            return self.places.give_back(places)


def number_type(tables: Sequence[Table]) -> Any:
    """Return the type of the numbers of ``tables`` in memory and in messages: uint8, or int32 for many tables."""
    return tf.uint8 if len(tables) <= _FEW_TABLES else tf.int32


def without_rows_where(mask: Any, numbers: Any) -> Any:
    """Return ``numbers``, the places of rows, int64 [n], with ``NO_ROW`` where ``mask`` is true."""
    return tf.where(mask, tf.fill(tf.shape(numbers), tf.constant(NO_ROW, tf.int64)), numbers)


def _capacity(row_bytes: int) -> Any:
    """Return how many rows the memory of the current device's host could hold, int32."""
    kib = tf.strings.to_number(tf.strings.regex_replace(tf.io.read_file("/proc/meminfo"), _MEMORY, r"\1"), tf.int64)
    return tf.cast(tf.minimum(kib * int(1024 * _PART_OF_MEMORY) // row_bytes, MOST_ROWS - 1), tf.int32)
