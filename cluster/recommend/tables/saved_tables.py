"""Embedding tables in a checkpoint: their rows, in parts of any length, with the ids of the rows.

For the tables of one width that share an optimizer, such as ``embeddings_16``, a checkpoint has:

    embeddings_16/tables         their names, string [tables]
    embeddings_16/expire         steps without its id after which a row expires, int64 [tables]; 0 for never
    embeddings_16/updates        updates that the optimizer has made, int64
    embeddings_16/parts          how many parts follow, int64
    embeddings_16/kept           names of the optimizer's slots, string [slots], if it has any
    embeddings_16/part_0/ids     int64 [n], the ids as ``cluster.embedding`` has them
    embeddings_16/part_0/tables  int32 [n], indices in the list of names
    embeddings_16/part_0/used    int32 [n], the number of the update that last changed a row
    embeddings_16/part_0/rows    float32 [n, width]
    embeddings_16/part_0/slots   float32 [n, slots * width], the optimizer's state of a row, if it has any

If a table gives an id its row only after several steps, the checkpoint also has the counts of ids without a row, in a
part for each server:

    embeddings_16/seen           how many parts follow, int64
    embeddings_16/seen_0/ids     int64 [n]
    embeddings_16/seen_0/tables  int32 [n]
    embeddings_16/seen_0/counts  int64 [n], the number of steps that have used the id

If a table has a bound, or its rows expire by time (``row_floors``), the checkpoint also has the number of the oldest
update whose rows a server still has, and the server of each part:

    embeddings_16/floors         int64 [servers, tables]
    embeddings_16/owners         int64 [parts]

If rows expire by time, also, of the first server:

    embeddings_16/seconds        float64 [tables], the time without its id after which a row expires; 0 for never
    embeddings_16/ticks          int64 [tables, 16], the number of the update at each of the last ticks
    embeddings_16/ages           float64 [tables], seconds since the last tick was due

So any number of servers can load a checkpoint, one part at a time (``loaded_rows``).

A delta checkpoint adds parts to the checkpoint before it, with the rows that have changed since. So an id may be in
several parts. Its last row is valid unless the row has expired: ``updates + 1 - used`` is above its table's limit, or
``used`` is below the floor of its part's server and table.
"""

from typing import Any, Dict, Iterator, List, NamedTuple, Sequence

from cluster.checkpoints.pieces_of_variables import Fed, Write
from cluster.checkpoints.row_pieces import LastRows
from cluster.recommend.tables import row_keys
from cluster.recommend.tables.held_rows import LAST_UPDATE, NO_UPDATE
from cluster.recommend.tables.loaded_rows import LoadedTables
from cluster.recommend.tables.store import Store
from cluster.recommend.tables.stored_tables import part_names, seen_names
from cluster.runtime.server_state import copied
from cluster.runtime.tf_compat import tf

IN_FLIGHT = 64  # asynchronous updates that may have their number, but not yet changed rows; there is a lock: few
_ONE_STEP = 1  # the same, while synchronous workers take a step


class _Last(NamedTuple):
    """All changed rows of a store, the placeholder for since when, and the count of updates before these are read."""

    part: Dict[str, Any]
    after: Any
    updates: Any


class _LastWrite(NamedTuple):
    operation: Any
    names: Any  # the placeholder for those of the part's columns


class SavedTables(LoadedTables):
    """The operations that save and restore one kind of stores.

    Create the object on the device of the process that writes the files.
    """

    def __init__(self, name: str, stores: Sequence[Store], fed: Fed):
        super().__init__(name, stores, fed)
        self._salts = row_keys.salts(stores[0].all_tables)
        self._begin, self._end, self._after, self._until = (tf.placeholder(tf.int64, []) for _ in range(4))
        self._size = tf.placeholder(tf.int64, [])
        self._changed = [each.changed_bounds(self._after, self._until, self._size) for each in self._stores]
        self._updates = [each.updates for each in self._stores]
        self._in_flight = 0 if stores[0].waits else IN_FLIGHT
        self._owners: List[int] = []  # the server of each part that is written
        self._owners_fed = tf.placeholder(tf.int64, [None])
        self._saved: List[int] = []  # updates of each store of which that has all rows
        self._parts = tf.placeholder(tf.int64, [])
        chosen = (self._begin, self._end, self._after, self._until)
        self._write = [self._save(self._values(each.live_part(*chosen))) for each in self._stores]
        self._updates_copied = [copied(each) for each in self._updates]
        self._floors_copied = [copied(each.floors) for each in self._stores if each.floors is not None]
        with tf.device(self._stores[0].device):
            ages = self._stores[0].ages
            self._ages_copied = ages.saved() if ages.happens else {}
        self._head_ending = f"-{self._name}-head"
        self._write_head, self._write_number = self._make_head(), self._save([self._parts])
        self._write_seen = [self._make_write_seen(each) for each in self._stores] if self._counts else []
        self._last = [self._make_last(store) for store in self._stores]
        self._last_writes: List[_LastWrite] = []
        self.read_last = tf.group(
            *self._updates_copied,
            *self._floors_copied,
            *self._ages_copied.values(),
            *(value for each in self._last for value in (each.updates, *each.part.values())),
        )

    def make_last_writes(self) -> None:
        """Make the operations that write the values that ``read_last`` reads."""
        self._write_last_head = self._make_head()
        for index, each in enumerate(self._last):
            names = tf.placeholder(tf.string, [len(self._columns)])
            operation = self._fed.save(f"-{self._name}-{index}", names, self._values(each.part))
            self._last_writes.append(_LastWrite(operation, names))

    def _values(self, part: Dict[str, Any]) -> List[Any]:
        """Return the columns of rows that were read, with ids in place of keys."""
        ids = row_keys.ids_of(part["keys"], part["tables"], self._salts)
        return [ids, *(part[name] for name in self._columns if name != "ids")]

    def _make_last(self, store: Store) -> _Last:
        """Make what reads all rows of a store that have changed, whatever their number."""
        after = tf.placeholder(tf.int64, [])
        with tf.device(store.device):
            updates = copied(store.updates)
            with tf.control_dependencies([updates]):  # as ``rows`` has it: before the rows are read
                begin, end = tf.zeros([], tf.int64), store.places.count.read_value()
        return _Last(store.live_part(begin, end, after, is_still=store.waits), after, updates)

    def _make_write_seen(self, store: Store) -> Any:
        with tf.device(store.device):
            known, seen = store.candidates.all()
        return self._save([row_keys.ids_of(known, seen.tables, self._salts), *seen])

    def _save(self, values: Sequence[Any]) -> Any:
        return self._fed.save("", self._fed.names, values)

    def _make_head(self) -> Any:
        updates = tf.reduce_max(tf.stack(self._updates_copied))
        limits = tf.constant([table.expire for table in self._stores[0].all_tables], tf.int64)
        values = {"tables": tf.constant(self._tables), "expire": limits, "updates": updates, "parts": self._parts}
        if self._kept:
            values["kept"] = tf.constant(self._kept)
        if self._floors_copied:
            values.update(floors=tf.stack(self._floors_copied), owners=self._owners_fed, **self._ages_copied)
        return self._fed.save(self._head_ending, [f"{self._name}/{each}" for each in values], list(values.values()))

    def rows(self, session: Any, piece_bytes: int, is_delta: bool, between_steps: bool = True) -> Iterator[Write]:
        """Yield one write for each part of the rows; see ``SavedRows.rows``."""
        after = self._saved if is_delta else [NO_UPDATE] * len(self._stores)
        self._owners = self._owners if is_delta else []
        unsure = self._in_flight if between_steps else max(self._in_flight, _ONE_STEP)
        newest = session.run(self._updates)  # before rows are read
        size = max(1, piece_bytes // self._stores[0].row_bytes)
        for index, (write, since) in enumerate(zip(self._write, after)):
            until = LAST_UPDATE if between_steps else int(newest[index])
            bounds = self._bounds(session, index, {self._after: since, self._until: until}, size)
            for begin, end in zip(bounds, bounds[1:]):
                feed = {self._begin: begin, self._end: end, self._after: since, self._until: until}
                names = self._of_part(len(self._owners))
                yield Write(write, {**feed, self._fed.names: names}, has_rows=True)
                self._owners.append(index)  # after the write, which a caller may leave out
        self._saved = [max(0, each - unsure) for each in newest]

    def bytes(self, session: Any) -> int:
        """Return an upper bound on the bytes of all rows."""
        return self._stores[0].row_bytes * int(sum(session.run([store.places.count for store in self._stores])))

    def _bounds(self, session: Any, index: int, chosen: Dict[Any, int], size: int) -> List[int]:
        """Return places of a store between each two of which there are ``size`` rows or fewer to write."""
        if chosen[self._after] == NO_UPDATE:  # all rows: the server need not look through them
            count = int(session.run(self._stores[index].places.count))
            return [*range(0, count, size), count]
        found: List[int] = session.run(self._changed[index], {**chosen, self._size: size}).tolist()
        return found

    def last(self, is_rehearsal: bool = False) -> LastRows:
        """Return the writes of all rows that have changed since ``rows`` ran; in a rehearsal, they have no rows."""
        after = [LAST_UPDATE] * len(self._stores) if is_rehearsal else self._saved
        owners = [*self._owners, *range(len(self._stores))]
        feed: Dict[Any, Any] = {self._parts: len(owners), self._owners_fed: owners}
        for number, (each, write, since) in enumerate(zip(self._last, self._last_writes, after), len(self._owners)):
            feed.update({each.after: since, write.names: self._of_part(number)})
        written = [(write.operation, each.updates) for write, each in zip(self._last_writes, self._last)]
        endings = [self._head_ending, *(f"-{self._name}-{index}" for index in range(len(written)))]
        return LastRows((self._write_last_head, written), feed, endings)

    def note_last(self, ran: Any) -> None:
        """Note that the operations of ``last`` have run; ``ran`` is their result."""
        _, written = ran
        self._owners += range(len(written))
        self._saved = [max(0, int(updates) - self._in_flight) for _, updates in written]

    def counts(self) -> Iterator[Write]:
        """Yield the writes of the counts of ids that have no row yet."""
        for index, write in enumerate(self._write_seen):
            yield Write(write, {self._fed.names: seen_names(self._name, index)})
        if self._counts:
            number = {self._parts: len(self._write_seen), self._fed.names: [f"{self._name}/seen"]}
            yield Write(self._write_number, number)

    def head(self) -> Write:
        """Return the write of the tables' names and limits, the count of updates, and the number of parts."""
        return Write(
            self._write_head, {self._parts: len(self._owners), self._owners_fed: self._owners}, self._head_ending
        )

    def _of_part(self, number: int) -> List[str]:
        return part_names(self._name, number, self._columns)
