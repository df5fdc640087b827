"""The rows that one parameter server holds, of all tables of one width.

    index       key -> row                                   see ``cluster.tables.row_places``
    rows        a row's value                                float32 [capacity, width]
    slots       what the optimizer keeps for a row           float32 [capacity, slots * width]
    keys        row -> key                                   int64 [capacity]
    tables      row -> number of its table                   uint8 [capacity]; int32 where there are many
    used        the update that changed a row last           int32 [capacity]
    updates     how many updates the optimizer has made      int64
    candidates  ids that were looked up and have no row      see ``cluster.tables.candidates``
    places      of rows, taken and free                      see ``cluster.tables.row_places``

``capacity`` is what the server's memory could hold. A variable is made without being written. So Linux gives it memory
page by page as rows are written, and what a table takes follows the ids that came.

Looking rows up changes none, and needs no lock: an id without a row has its first value. An update gives ids their
rows. It knows them by their keys, so a gradient that comes late finds its ids, wherever their rows are by then.
"""

from functools import partial
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

from cluster.embedding import Table
from cluster.runtime.server_state import MOST_ROWS, count_from_zero, locked, reserve
from cluster.runtime.tensors import call, cond, where_true
from cluster.runtime.tf_compat import tf
from cluster.tables.candidates import Candidates
from cluster.tables.initializers import first_values
from cluster.tables.row_keys import refuse_collisions
from cluster.tables.row_places import NO_ROW, Expiry, Index, RowPlaces

NO_UPDATE, LAST_UPDATE = -1, 2**31 - 1  # before the first one; that of no run
CANDIDATES = 1 << 18  # of a server, in a generation, where ids have to come more than once
_FRESH = 1 << 14  # the same, where each gets its row at once
_PART_OF_MEMORY = 0.8
_INDEX_BYTES = 48  # of an entry of the index, at most
_FEW_TABLES = 1 << 8  # that an uint8 tells apart
_MEMORY = r"(?s)MemTotal:\s*(\d+) kB.*"
Update = Callable[[Any, Any, Any], Any]  # (number of the update, places of rows, gradients) -> operation


class RowSlot(NamedTuple):
    """Something that an optimizer keeps for each element: a name and the first value."""

    name: str
    first: float


class Store:
    """Make the variables of one server for tables of one width, on the current device.

    Args:
      name: of the store, on all servers.
      tables: in the order of their numbers.
      slots: of the optimizer.
      stores: how many stores this server has, which share its memory.
      waits: whether no update begins while a worker looks rows up, as in synchronous training.
    """

    def __init__(
        self,
        name: str,
        device: str,
        tables: Sequence[Table],
        slots: Sequence[RowSlot],
        stores: int = 1,
        waits: bool = True,
    ):
        self.name, self.device, self.all_tables, self.kept = name, device, list(tables), list(slots)
        self.width = tables[0].width
        self.waits, counts = waits, any(each.admit > 1 for each in tables)
        full = f"a parameter server's memory is full: no more rows of {', '.join(t.name for t in tables)}"
        with tf.device(device), tf.control_dependencies(None), tf.container("tables"):
            capacity = _capacity((self.row_bytes + _INDEX_BYTES) * stores)
            self.rows = reserve(name, [self.width], tf.float32, capacity)
            self.slots = reserve(f"{name}/slots", [self.width * len(slots)], tf.float32, capacity) if slots else None
            self.keys = reserve(f"{name}/keys", [], tf.int64, capacity)
            self.tables = reserve(f"{name}/tables", [], number_type(tables), capacity)
            self.used = reserve(f"{name}/used", [], tf.int32, capacity)
            self.updates = count_from_zero(f"{name}/updates")
            self._mutex = tf.raw_ops.MutexV2(shared_name=f"{name}/mutex")
            self._names = [each.name for each in tables]
            self.candidates = Candidates(name, CANDIDATES if counts else _FRESH, counts, self._names)
            self._expiry = Expiry([each.expire for each in tables])
            self._index = Index(name, removes=self._expiry.happens)
            self.places = RowPlaces(name, capacity, self.used, f"{full}; add parameter servers", self._expiry.happens)

    @property
    def variables(self) -> List[Any]:
        """Return all variables of this server."""
        columns = [self.rows, self.slots, self.keys, self.tables, self.used]
        return [
            *[each for each in columns if each is not None],
            *[self.updates, self.candidates.turn],
            *self.places.variables,
        ]

    @property
    def row_bytes(self) -> int:
        """Return the bytes of a row with its slots and what belongs to a row."""
        return 4 * self.width * (1 + len(self.kept)) + 16

    def first(self) -> Any:
        """Make the operation that gives this server a store without rows, also where it has one with rows."""
        with tf.device(self.device):

            def work() -> Any:
                with tf.control_dependencies([self._index.empty(), self.candidates.forget()]):
                    made = tf.group(*[each.initializer for each in self.variables])
                with tf.control_dependencies([made]):  # what is read of the first place for an id without a row
                    zero = [tf.zeros([1], each.dtype.base_dtype) for each in (self.tables, self.used)]
                    firsts = zip((self.tables, self.used), zero)
                    return tf.group(*[tf.scatter_update(each, [0], value) for each, value in firsts])

            return self._locked([], work)

    # -- what checkpoints need

    def live_part(
        self, begin: Any, end: Any, since: Any = NO_UPDATE, until: Any = LAST_UPDATE, is_still: bool = False
    ) -> Dict[str, Any]:
        """Return the rows from ``begin`` to before ``end``, on the server: keys, tables, used, rows, and slots if any.

        Left out are places without an id, rows that have expired, and rows whose last update is not one after that of
        ``since``, up to that of ``until``. Where an update runs meanwhile, what is read of a row that it changes may be
        old in part, but is of one id. ``is_still``: whether none can run.
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
        """Return places, int64 [n + 1], between each two of which are ``size`` rows of ``live_part`` or fewer.

        The first is that of the first such row, and the last is the number of all places.
        """
        with tf.device(self.device):
            count = self.places.count.read_value()
            return tf.concat([self._changed(tf.zeros_like(count), count, since, until)[::size], [count]], 0)

    def _changed(self, begin: Any, end: Any, since: Any, until: Any) -> Any:
        used = tf.slice(self.used, [begin], [end - begin])  # without a copy
        return begin + where_true((used > tf.cast(since, tf.int32)) & (used <= tf.cast(until, tf.int32)))

    def put(self, keys: Any, tables: Any, used: Any, rows: Any, slots: Any = None) -> Any:
        """Make the operation that gives keys [n] these rows, on this server.

        Left out are keys that have a row, and rows that have expired by the update after this store's.
        """
        with tf.device(self.device):
            columns = [keys, tables, used, rows, *([] if slots is None else [slots])]

            def work() -> Any:
                is_new = self._index.find(keys) < 0
                if self._expiry.happens:
                    is_new &= tf.logical_not(self._expiry.expired(tables, used, self.updates.read_value() + 1))
                return self._add(*(tf.gather(each, where_true(is_new)) for each in columns))[1]

            return self._locked(columns, work)

    # -- looking rows up

    def receive(self, keys: Any, tables: Any) -> Tuple[Any, Any]:
        """Return keys and the numbers of their tables in this server's memory, to which they travel once."""
        with tf.device(self.device):
            return tf.identity(keys), tf.identity(tables)

    def find(self, keys: Any, tables: Any, trains: bool) -> Any:
        """Return the rows of distinct keys [n] of tables [n], float32 [n, width]; first values where there is none.

        Args:
          keys, tables: in this server's memory: a branch takes its inputs from where they are, each by itself.
          trains: whether a gradient follows, which may give ids their rows.
        """
        with tf.device(self.device):
            tables = tf.cast(tables, tf.int32)
            numbers = self._index.find(keys)
            places = tf.maximum(numbers, 0)
            rows, held = tf.gather(self.rows, places), self._tables_at(places)
            if self._expiry.happens and not self.waits:
                # A row may have gone to another id since its number was looked up.
                with tf.control_dependencies([rows, held]):
                    numbers = tf.where(
                        tf.equal(self._index.find(keys), numbers), numbers, tf.fill(tf.shape(keys), _none())
                    )
            if self._expiry.happens:  # else the count of updates would be read for nothing
                numbers = self._unexpired(numbers, self.updates.read_value() + 1)
            if len(self.all_tables) > 1:
                held = tf.where(numbers < 0, tables, held)
                with tf.control_dependencies([refuse_collisions(keys, held, tables, self._names)]):
                    numbers = tf.identity(numbers)

            def add_first() -> Any:
                places = where_true(numbers < 0)
                new, of = tf.gather(keys, places), tf.gather(tables, places)
                with tf.control_dependencies([self.candidates.note(new, of)] if trains else []):
                    return self._with_first_values(rows, new, of, places)

            return cond(tf.reduce_any(numbers < 0), add_first, lambda: tf.identity(rows))

    def _tables_at(self, places: Any) -> Any:
        return tf.cast(tf.gather(self.tables, places), tf.int32)

    def _unexpired(self, numbers: Any, update: Any) -> Any:
        """Return the same numbers, without those of rows that have expired by an update."""
        if not self._expiry.happens:
            return numbers
        places = tf.maximum(numbers, 0)
        expired = self._expiry.expired(self._tables_at(places), tf.gather(self.used, places), update)
        return tf.where(expired, tf.fill(tf.shape(numbers), _none()), numbers)

    def _with_first_values(self, rows: Any, keys: Any, tables: Any, places: Any) -> Any:
        """Return the rows, with the first values of keys of tables at their places, int64 [m]."""
        return tf.tensor_scatter_nd_update(rows, tf.expand_dims(places, 1), self._first_values(keys, tables))

    def _first_values(self, keys: Any, tables: Any) -> Any:
        return call(f"first_values {self.name}", partial(first_values, self.all_tables), keys, tables)

    # -- updating them

    def update(self, keys: Any, grads: Any, apply: Update, asked: Sequence[Tuple[Any, Any]] = ()) -> Any:
        """Make the operation that updates the rows of distinct keys [n] with gradients [n, width].

        A key that has no row gets one, if it has come in as many updates as its table asks for.

        Args:
          asked: the (keys, tables) of this worker's lookups, in this server's memory, where other workers' updates may
            lie between these and this update: the candidates among them may be forgotten by then.
        """
        with tf.device(self.device):
            keys, grads = tf.reshape(keys, [-1]), tf.reshape(grads, [-1, self.width])
            needed = [keys, grads, *(each for pair in asked for each in pair)]
            return self._locked(needed, lambda: self._update(keys, grads, apply, asked))

    def _update(self, keys: Any, grads: Any, apply: Update, asked: Sequence[Tuple[Any, Any]]) -> Any:
        number = tf.assign_add(self.updates, 1)
        numbers = self._unexpired(self._index.find(keys), number)
        numbers = cond(
            tf.reduce_any(numbers < 0), lambda: self._admit(keys, numbers, number, asked), lambda: tf.identity(numbers)
        )
        has_row = numbers >= 0
        places, grads = cond(
            tf.reduce_all(has_row),
            lambda: (tf.identity(numbers), tf.identity(grads)),
            lambda: tuple(tf.gather(each, where_true(has_row)) for each in (numbers, grads)),
        )
        places.set_shape([None])
        grads.set_shape([None, self.width])
        used = tf.scatter_update(self.used, places, tf.fill(tf.shape(places), tf.cast(number, tf.int32)))
        done = tf.group(used, apply(number, places, grads))
        with tf.control_dependencies([done]):
            return self._remove_expired(number) if self._expiry.happens else tf.no_op()

    def _admit(self, keys: Any, numbers: Any, update: Any, asked: Sequence[Tuple[Any, Any]]) -> Any:
        """Give those of the keys without a row one whose time has come; return the numbers of all."""
        noted: List[Any] = []
        for of_lookup, tables in asked:
            with tf.control_dependencies(noted):
                noted = [self._note_new(of_lookup, tables, update)]
        without = where_true(numbers < 0)
        with tf.control_dependencies(noted):
            new = tf.gather(keys, without)
            known = self.candidates.of(new)
        kept = where_true(known.tables >= 0)
        new, tables, counts, of_new = (tf.gather(each, kept) for each in (new, *known, without))
        removed = self._index.remove(new) if self._expiry.happens else tf.no_op()  # those of expired rows
        written = tf.no_op()
        if self.candidates.counts:
            wanted = tf.gather(tf.constant([each.admit for each in self.all_tables], tf.int64), tables)
            is_due = counts + 1 >= wanted
            written = self.candidates.write(new, tables, tf.where(is_due, tf.zeros_like(counts), counts + 1))
            new, tables, of_new = (tf.gather(each, where_true(is_due)) for each in (new, tables, of_new))
        with tf.control_dependencies([written, removed]):
            made, added = self._add(new, tables, tf.fill(tf.shape(new), tf.cast(update, tf.int32)))
        with tf.control_dependencies([added]):
            aged = self.candidates.age()
        with tf.control_dependencies([aged]):
            return tf.tensor_scatter_nd_update(numbers, tf.expand_dims(of_new, 1), made)

    def note(self, keys: Any, tables: Any) -> Any:
        """Make the operation that keeps those of the keys [n] in mind that have no row, for the next update."""
        with tf.device(self.device):
            return self._note_new(keys, tables, self.updates.read_value() + 1)

    def _note_new(self, keys: Any, tables: Any, update: Any) -> Any:
        places = where_true(self._unexpired(self._index.find(keys), update) < 0)
        return self.candidates.note(tf.gather(keys, places), tf.cast(tf.gather(tables, places), tf.int32))

    def _remove_expired(self, update: Any) -> Any:
        """Make the operation that looks through some rows, and gives back the places of those that have expired."""
        places = self._expiry.next_places(self.places.count.read_value(), update)
        used, keys = tf.gather(self.used, places), tf.gather(self.keys, places)
        is_over = self._expiry.expired(self._tables_at(places), used, update) & (used >= 0)
        places, keys = (tf.gather(each, where_true(is_over)) for each in (places, keys))
        is_its = tf.equal(self._index.find(keys), places)  # the id may have another row by now
        removed = self._index.remove(tf.gather(keys, where_true(is_its)))
        with tf.control_dependencies([removed]):
            return self.places.give_back(places)

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
        with tf.control_dependencies(written):
            return places, self._index.insert(keys, places)

    def _first_slots(self, size: Any) -> Any:
        of_a_row = [slot.first for slot in self.kept for _ in range(self.width)]
        if len(set(of_a_row)) == 1:  # for which there is an operation that is quicker
            return tf.fill(tf.stack([size, len(of_a_row)]), of_a_row[0])
        return tf.tile(tf.constant([of_a_row], tf.float32), tf.stack([size, 1]))

    def _locked(self, needed: Sequence[Any], work: Callable[[], Any]) -> Any:
        """Make operations that one step at a time runs; return the one that ends them."""
        opened, _ = locked(self._mutex, needed, lambda: [work()])
        return opened


def number_type(tables: Sequence[Table]) -> Any:
    """Return the type in which numbers of tables are kept, and travel."""
    return tf.uint8 if len(tables) <= _FEW_TABLES else tf.int32


def _none() -> Any:
    return tf.constant(NO_ROW, tf.int64)


def _capacity(row_bytes: int) -> Any:
    """Return how many rows the memory of the current device's host could hold, int32."""
    kib = tf.strings.to_number(tf.strings.regex_replace(tf.io.read_file("/proc/meminfo"), _MEMORY, r"\1"), tf.int64)
    return tf.cast(tf.minimum(kib * int(1024 * _PART_OF_MEMORY) // row_bytes, MOST_ROWS - 1), tf.int32)
