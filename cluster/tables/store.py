"""The rows that one parameter server holds, of all tables of one width.

    index     key -> row, a hash table                     int64 -> int64
    rows      a row's value                                float32 [capacity, width]
    slots     what the optimizer keeps for a row           float32 [capacity, slots * width]
    keys      row -> key                                   int64 [capacity]
    tables    row -> number of its table                   int32 [capacity]
    count     rows that are taken, from the first on       int64
    updates   how many updates the optimizer has made       int64

``capacity`` is what the server's memory could hold. A variable is made without being written. So Linux gives it memory
page by page as rows are written, and what a table takes follows the ids that came.

Workers look rows up at the same time, without a lock. To give a new id its row, a worker takes the server's mutex.
The index gets the id last. So nobody finds a row without a value.
"""

from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

from tensorflow.core.framework.attr_value_pb2 import AttrValue

from cluster.embedding import ROWS, Table
from cluster.runtime.declared import declare, variable_of
from cluster.runtime.tf_compat import tf
from cluster.tables.first_values import first_values

NO_ROW = -1
_PART_OF_MEMORY = 0.8
_INDEX_BYTES = 48  # of an entry of the index
_MEMORY = r"(?s)MemTotal:\s*(\d+) kB.*"


class Slot(NamedTuple):
    """Something that an optimizer keeps for each element: a name and the first value."""

    name: str
    first: float


class Found(NamedTuple):
    """The rows [n, width] of keys [n] on one server, and their numbers, int64 [n]; ``NO_ROW`` for a key without one."""

    rows: Any
    numbers: Any


class Store:
    """Make the variables of one server for tables of one width, on the current device.

    Args:
      name: of the store, on all servers.
      tables: in the order of their numbers.
      slots: of the optimizer.
      stores: how many stores this server has, which share its memory.
    """

    def __init__(self, name: str, device: str, tables: Sequence[Table], slots: Sequence[Slot], stores: int = 1):
        self.device, self.all_tables, self.kept = device, list(tables), list(slots)
        self.width = tables[0].width
        with tf.device(device), tf.control_dependencies(None), tf.container("tables"):
            capacity = _capacity((self.row_bytes + _INDEX_BYTES) * stores)
            self.rows = _untouched(name, [self.width], tf.float32, capacity)
            self.slots = _untouched(f"{name}/slots", [self.width * len(slots)], tf.float32, capacity) if slots else None
            self.keys = _untouched(f"{name}/keys", [], tf.int64, capacity)
            self.tables = _untouched(f"{name}/tables", [], tf.int32, capacity)
            self.count, self.updates = _counter(f"{name}/count"), _counter(f"{name}/updates")
            # Not the dense hash table: it never uses the places of removed keys again.
            self._index = tf.raw_ops.MutableHashTableV2(
                key_dtype=tf.int64, value_dtype=tf.int64, shared_name=f"{name}/index"
            )
            self._mutex = tf.raw_ops.MutexV2(shared_name=f"{name}/mutex")
            self._capacity = tf.raw_ops.Shape(input=self.keys, out_type=tf.int64)[0]  # not the one it was declared with

    @property
    def variables(self) -> List[Any]:
        """Return all variables of this server."""
        return [
            self.rows,
            *([] if self.slots is None else [self.slots]),
            self.keys,
            self.tables,
            self.count,
            self.updates,
        ]

    @property
    def row_bytes(self) -> int:
        """Return the bytes of a row with its slots, its key and the number of its table."""
        return 4 * self.width * (1 + len(self.kept)) + 12

    def first(self) -> Any:
        """Make the operation that gives this server a store without rows, also where it has one with rows."""
        with tf.device(self.device), tf.control_dependencies([self._forget_all()]):
            return tf.group(*[each.initializer for each in self.variables])

    def _forget_all(self) -> Any:
        nothing = tf.zeros([0], tf.int64)
        return tf.raw_ops.LookupTableImportV2(table_handle=self._index, keys=nothing, values=nothing)

    def live_part(self, begin: Any, end: Any) -> Dict[str, Any]:
        """Return the rows from ``begin`` to before ``end``, on the server: keys, tables, rows, and slots if any.

        Left out are those that no id has: a step that was given up may have taken them.
        """
        with tf.device(self.device):
            places = tf.range(begin, tf.identity(end))
            places = tf.boolean_mask(places, tf.equal(self._numbers(tf.gather(self.keys, places)), places))
            kept = {"keys": self.keys, "tables": self.tables, "rows": self.rows, "slots": self.slots}
            return {name: tf.gather(each, places) for name, each in kept.items() if each is not None}

    def put(self, keys: Any, tables: Any, rows: Any, slots: Any = None) -> Any:
        """Make the operation that gives keys [n] that have no row these, on this server."""
        with tf.device(self.device):
            done, _ = self._locked(lambda: (self.add(keys, tables, rows, slots), keys), [keys, tables, rows])
            return done

    def find(self, keys: Any, tables: Any, may_admit: bool) -> Found:
        """Return what is known of distinct keys [n] of tables [n]; the rows of unknown ones are first values.

        Args:
          may_admit: whether unknown ids get a row.
        """
        with tf.device(self.device):
            numbers = self._numbers(keys)
            if may_admit:
                some_new = tf.reduce_any(numbers < 0)
                numbers = tf.cond(some_new, lambda: self._admit(keys, tables), lambda: tf.identity(numbers))
            with tf.control_dependencies([self._refuse_collisions(numbers, tables)]):
                numbers = tf.identity(numbers)
            rows = tf.gather(self.rows, tf.maximum(numbers, 0))
            if not may_admit:
                rows = self._with_first_values(rows, keys, tables, numbers)
            return Found(rows, numbers)

    def _numbers(self, keys: Any) -> Any:
        none = tf.constant(NO_ROW, tf.int64)
        return tf.raw_ops.LookupTableFindV2(table_handle=self._index, keys=keys, default_value=none)

    def _admit(self, keys: Any, tables: Any) -> Any:
        """Give the unknown ones of these keys rows; return the rows' numbers, of all."""

        def work() -> Tuple[Any, Any]:
            is_new = self._numbers(keys) < 0
            added = self.add(tf.boolean_mask(keys, is_new), tf.boolean_mask(tables, is_new))
            with tf.control_dependencies([added]):
                return added, tf.identity(self._numbers(keys))

        done, numbers = self._locked(work, [keys, tables])
        with tf.control_dependencies([done]):
            return tf.identity(numbers)

    def _locked(self, work: Callable[[], Tuple[Any, Any]], needed: Sequence[Any]) -> Tuple[Any, Any]:
        """Make operations that one step at a time runs; return the one that ends them, and what they return.

        Args:
          needed: what has to travel is here before others wait.
        """
        with tf.control_dependencies(needed):
            lock = tf.raw_ops.MutexLock(mutex=self._mutex)
        with tf.control_dependencies([lock]):
            done, result = work()
        with tf.control_dependencies([done, result]):
            return tf.raw_ops.ConsumeMutexLock(mutex_lock=lock), result

    def add(self, keys: Any, tables: Any, rows: Any = None, slots: Any = None) -> Any:
        """Make the operation that gives new keys [n] rows: with these values, or else first values."""
        with tf.device(self.device):
            size = tf.size(keys, out_type=tf.int64)
            # Rows are taken by counting, in one go: a step that was given up may leave TensorFlow's mutex open.
            end = tf.identity(tf.assign_add(self.count, size, use_locking=True))
            full = f"a parameter server's memory is full: no more rows of {', '.join(t.name for t in self.all_tables)}"
            fits = tf.debugging.assert_less_equal(end, self._capacity, message=f"{full}; add parameter servers")
            with tf.control_dependencies([fits]):
                places = tf.range(end - size, end)
            rows = first_values(self.all_tables, keys, tables) if rows is None else rows
            written = [
                tf.scatter_update(self.rows, places, rows),
                tf.scatter_update(self.keys, places, keys),
                tf.scatter_update(self.tables, places, tables),
            ]
            if self.slots is not None:
                slots = self._first_slots(size) if slots is None else slots
                written.append(tf.scatter_update(self.slots, places, slots))
            with tf.control_dependencies([each.op for each in written]):
                return tf.raw_ops.LookupTableInsertV2(table_handle=self._index, keys=keys, values=places)

    def _first_slots(self, size: Any) -> Any:
        of_a_row = [slot.first for slot in self.kept for _ in range(self.width)]
        return tf.tile(tf.constant([of_a_row], tf.float32), tf.stack([size, 1]))

    def _refuse_collisions(self, numbers: Any, tables: Any) -> Any:
        if len(self.all_tables) == 1:
            return tf.no_op()
        same = (tf.gather(self.tables, tf.maximum(numbers, 0)) - tables) * tf.cast(numbers >= 0, tf.int32)
        return tf.debugging.assert_equal(
            same, tf.zeros_like(same), message="two tables have ids with the same key; give one of them another name"
        )

    def _with_first_values(self, rows: Any, keys: Any, tables: Any, numbers: Any) -> Any:
        """Return the rows, with first values for the keys that have no row."""
        places = tf.reshape(tf.where(numbers < 0), [-1])
        fresh = first_values(self.all_tables, tf.gather(keys, places), tf.gather(tables, places))
        known = tf.where(tf.tile((numbers < 0)[:, tf.newaxis], [1, self.width]), tf.zeros_like(rows), rows)
        return known + tf.scatter_nd(places[:, tf.newaxis], fresh, tf.shape(rows, out_type=tf.int64))


def _capacity(row_bytes: int) -> Any:
    """Return how many rows the memory of the current device's host could hold, int32."""
    kib = tf.strings.to_number(tf.strings.regex_replace(tf.io.read_file("/proc/meminfo"), _MEMORY, r"\1"), tf.int64)
    return tf.cast(tf.minimum(kib * int(1024 * _PART_OF_MEMORY) // row_bytes, ROWS - 1), tf.int32)


def _untouched(name: str, width: Sequence[int], dtype: Any, capacity: Any) -> Any:
    """Return a variable of ``capacity`` rows whose initializer gives it memory, writes nothing, and runs once.

    A second time TensorFlow would copy the new memory into the first, and so write all of it.
    """
    held = declare(name, (ROWS, *width), dtype)

    def make() -> Any:
        with tf.control_dependencies([_hand_over(held, tf.stack([capacity, *width]))]):
            return tf.constant(True)

    has_memory = tf.raw_ops.IsVariableInitialized(ref=held)
    return variable_of(held, tf.cond(has_memory, lambda: tf.constant(True), make).op)


def _hand_over(held: Any, shape: Any) -> Any:
    """Make the operation that lets a variable have new memory of a shape."""
    memory = tf.raw_ops.Empty(shape=shape, dtype=held.dtype.base_dtype)
    assign = tf.assign(held, memory, validate_shape=False).op
    # Without it TensorFlow wants memory for network cards and GPUs, and copies. Its optimizer of graphs sets it, too.
    assign._set_attr("_grappler_relax_allocator_constraints", AttrValue(b=True))
    return assign


def _counter(name: str) -> Any:
    held = declare(name, (), tf.int64)
    return variable_of(held, tf.assign(held, tf.zeros([], tf.int64)).op)
