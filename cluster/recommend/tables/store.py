"""The rows of all tables of one width on one parameter server: lookups, updates, and rows from a checkpoint.

A lookup changes no row and needs no lock: for an id without a row, it returns the first value. An update gives ids
their rows. The indices of a gradient are the keys of its ids. So even a late gradient finds the rows of its ids, which
may have other places by then.
"""

from typing import Any, Callable, List, Sequence, Tuple

from cluster.recommend.tables.candidates import Candidates
from cluster.recommend.tables.held_rows import HeldRows, RowSlot, without_rows_where
from cluster.recommend.tables.lookups import Table
from cluster.recommend.tables.row_keys import refuse_collisions
from cluster.runtime.server_state import locked
from cluster.runtime.tensors import cond, where_true
from cluster.runtime.tf_compat import tf

CANDIDATES = 1 << 18  # of a server, in a generation, where ids have to come more than once
_FRESH = 1 << 14  # the same, where each gets its row at once
Update = Callable[[Any, Any, Any], Any]  # (number of the update, places of rows, gradients) -> operation


class Store(HeldRows):
    """The rows of tables of one width on one server, and the operations on them.

    Args:
      name: the name of the store; the names of its variables begin with it.
      device: the device of the server.
      tables: the tables, in the order of their numbers.
      slots: the slots that the optimizer keeps for each element of a row.
      stores: the number of stores on this server, which share its memory.
      waits: whether no update begins while a worker looks up rows, as in synchronous training.
      servers: the number of servers, which share the bounds of tables.
    """

    def __init__(
        self,
        name: str,
        device: str,
        tables: Sequence[Table],
        slots: Sequence[RowSlot],
        stores: int = 1,
        waits: bool = True,
        servers: int = 1,
    ):
        self.waits, counts = waits, any(each.admit > 1 for each in tables)
        self._names = [each.name for each in tables]
        with tf.device(device), tf.control_dependencies(None), tf.container("tables"):
            super().__init__(name, device, tables, slots, stores, servers=servers)
            self._mutex = tf.raw_ops.MutexV2(shared_name=f"{name}/mutex")
            self.candidates = Candidates(name, CANDIDATES if counts else _FRESH, counts, self._names)

    @property
    def variables(self) -> List[Any]:
        """Return all variables of this store."""
        return [*super().variables, self.candidates.turn]

    def first(self) -> Any:
        """Make the operation that initialises this store as empty; it also removes all existing rows."""
        with tf.device(self.device):

            def work() -> Any:
                with tf.control_dependencies([self._index.empty(), self.candidates.forget()]):
                    made = tf.group(*[each.initializer for each in self.variables])
                with tf.control_dependencies([made]):  # what is read of the first place for an id without a row
                    zero = [tf.zeros([1], each.dtype.base_dtype) for each in (self.tables, self.used)]
                    firsts = zip((self.tables, self.used), zero)
                    return tf.group(*[tf.scatter_update(each, [0], value) for each, value in firsts])

            return self._locked([], work)

    def put(self, keys: Any, tables: Any, used: Any, rows: Any, slots: Any = None) -> Any:
        """Make the operation that adds ``rows`` [n, width] for ``keys`` [n] to this store.

        The operation skips keys that already have a row, and rows that will have expired at this store's next update.

        Args:
          tables: the number of each row's table, [n].
          used: the number of the update that last changed each row, [n].
          slots: the slots of the rows, [n, slots * width]; None for a store without slots.
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
        """Return ``keys`` and ``tables``, the numbers of their tables, as tensors in the memory of this server.

        So each of the two tensors is sent to the server only once.
        """
        with tf.device(self.device):
            return tf.identity(keys), tf.identity(tables)

    def find(self, keys: Any, tables: Any, trains: bool) -> Any:
        """Return the rows of distinct ``keys`` [n], float32 [n, width]; for a key without a row, its first value.

        Args:
          keys, tables: the keys and the numbers of their tables, as ``receive`` returns them. From another device, each
            branch of a condition in the operation would fetch them separately.
          trains: whether a gradient follows, which may give ids their rows.
        """
        with tf.device(self.device):
            tables = tf.cast(tables, tf.int32)
            numbers = self._index.find(keys)
            places = tf.maximum(numbers, 0)
            rows, held = tf.gather(self.rows, places), self._tables_at(places)
            if self._removes and not self.waits:
                # A row may have gone to another id since its number was looked up.
                with tf.control_dependencies([rows, held]):
                    numbers = without_rows_where(tf.not_equal(self._index.find(keys), numbers), numbers)
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
                    return tf.tensor_scatter_nd_update(rows, tf.expand_dims(places, 1), self._first_values(new, of))

            return cond(tf.reduce_any(numbers < 0), add_first, lambda: tf.identity(rows))

    # -- updating them

    def update(self, keys: Any, grads: Any, apply: Update, asked: Sequence[Tuple[Any, Any]] = ()) -> Any:
        """Make the operation that updates the rows of distinct ``keys`` [n] with ``grads`` [n, width].

        A key without a row gets a row once its table's number of updates (``Table.admit``) have had the key.

        Args:
          apply: makes the operation that changes rows, from the update's number, the rows' places and the gradients.
          asked: the (keys, tables) of this worker's lookups, as ``receive`` returns them. They are needed if updates of
            other workers may come between the lookups and this update. By then, the store may have forgotten ids
            without a row.
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
        return self._remove_old(number, tf.group(used, apply(number, places, grads)))

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
        """Make the operation that notes the keys without a row among ``keys`` [n] as candidates for the next update."""
        with tf.device(self.device):
            return self._note_new(keys, tables, self.updates.read_value() + 1)

    def _note_new(self, keys: Any, tables: Any, update: Any) -> Any:
        places = where_true(self._unexpired(self._index.find(keys), update) < 0)
        return self.candidates.note(tf.gather(keys, places), tf.cast(tf.gather(tables, places), tf.int32))

    def _locked(self, needed: Sequence[Any], work: Callable[[], Any]) -> Any:
        """Make operations that one step at a time runs; return the one that ends them."""
        opened, _ = locked(self._mutex, needed, lambda: [work()])
        return opened
