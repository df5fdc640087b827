"""Embedding tables in a checkpoint: the rows that there are, in parts of any length, with their ids.

For the tables of one width that share an optimizer, such as ``embeddings_16``, a checkpoint has:

    embeddings_16/tables         their names, string [tables]
    embeddings_16/expire         steps without its id after which a row expires, int64 [tables]; 0 for never
    embeddings_16/updates        updates that the optimizer has made, int64
    embeddings_16/parts          how many parts follow, int64
    embeddings_16/part_0/ids     int64 [n], an id as ``cluster.embedding`` has it
    embeddings_16/part_0/tables  int32 [n], places in the list of names
    embeddings_16/part_0/used    int32 [n], the update that changed a row last
    embeddings_16/part_0/rows    float32 [n, width]
    embeddings_16/part_0/slots   float32 [n, slots * width], what the optimizer keeps for a row, if anything

Where ids have to come more than once, it also has what was counted of those without a row, in a part for each server:

    embeddings_16/seen           parts that follow, int64
    embeddings_16/seen_0/ids     int64 [n]
    embeddings_16/seen_0/tables  int32 [n]
    embeddings_16/seen_0/counts  int64 [n], steps that have had the id

So a checkpoint can be read with any number of servers, and a part at a time.

A delta continues the parts of the checkpoint before it with the rows that have changed since. So an id may be in
several parts. Its last row counts, unless that has expired: ``updates + 1 - used`` is above its table's limit.
"""

from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from cluster.checkpoints.pieces_of_variables import Fed, Write, copied
from cluster.checkpoints.stored_tables import NOT_IN_CHECKPOINT
from cluster.runtime.tf_compat import tf
from cluster.tables import row_keys
from cluster.tables.store import LAST_UPDATE, NO_UPDATE, Store
from cluster.tables.stores import Kind, Stores

IN_FLIGHT = 64  # asynchronous updates that may have their number, but not yet changed rows; there is a lock: few
_ONE_STEP = 1  # the same, while synchronous workers take a step
_Step = Tuple[Any, Dict[Any, Any]]  # an operation, and what it is fed


class _Last(NamedTuple):
    """All changed rows of a store, the placeholder for since when, and the count of updates before these are read."""

    part: Dict[str, Any]
    after: Any
    updates: Any


class _LastWrite(NamedTuple):
    operation: Any
    names: Any  # the placeholder for those of the part's columns


class SavedTables:
    """Save and restore the stores of one kind.

    Make it on the device of the process that writes the files.
    """

    def __init__(self, kind: Kind, stores: Sequence[Store], fed: Fed):
        self._name, self._stores, self._fed = kind.name, list(stores), fed
        self._tables = [table.name for table in stores[0].all_tables]
        self._salts = tf.constant([row_keys.salt(name) for name in self._tables], tf.int64)
        self._columns = {"ids": tf.int64, "tables": tf.int32, "used": tf.int32, "rows": tf.float32}
        if stores[0].slots is not None:
            self._columns["slots"] = tf.float32
        self._widths = {"rows": kind.width, "slots": kind.width * len(stores[0].kept)}
        self._row_bytes = stores[0].row_bytes
        self._begin, self._end, self._after, self._until = (tf.placeholder(tf.int64, []) for _ in range(4))
        self._size = tf.placeholder(tf.int64, [])
        self._changed = [each.changed_bounds(self._after, self._until, self._size) for each in self._stores]
        self._updates = [each.updates for each in self._stores]
        self._in_flight = 0 if stores[0].waits else IN_FLIGHT
        self._number = 0  # of parts, in the last checkpoint
        self._saved: List[int] = []  # updates of each store of which that has all rows
        self._parts = tf.placeholder(tf.int64, [])
        self._places = tf.placeholder(tf.int32, [None])  # of the checkpoint's tables among these; -1: not among them
        self._write = [self._make_write(store) for store in self._stores]
        self._updates_copied = [copied(each) for each in self._updates]
        self._head_ending = f"-{self._name}-head"
        self._write_head, self._write_number = self._make_head(), self._save([self._parts])
        self._load, self._load_updates = self._make_load(), self._make_load_updates()
        self._counts = any(table.admit > 1 for table in stores[0].all_tables)
        self._write_seen = [self._make_write_seen(store) for store in self._stores] if self._counts else []
        self._load_seen = self._make_load_seen() if self._counts else None
        self._clear = tf.group(*[store.first() for store in self._stores])
        self._last = [self._make_last(store) for store in self._stores]
        self._last_writes: List[_LastWrite] = []
        self.read_last = tf.group(
            *self._updates_copied, *(value for each in self._last for value in (each.updates, *each.part.values()))
        )

    def make_last_writes(self) -> None:
        """Make the operations that write what ``read_last`` reads."""
        self._write_last_head = self._make_head()
        for index, each in enumerate(self._last):
            names = tf.placeholder(tf.string, [len(self._columns)])
            self._last_writes.append(
                _LastWrite(self._fed.save(f"-{self._name}-{index}", names, self._values(each.part)), names)
            )

    def _make_write(self, store: Store) -> Any:
        return self._save(self._values(store.live_part(self._begin, self._end, self._after, self._until)))

    def _values(self, part: Dict[str, Any]) -> List[Any]:
        """Return the columns of rows that were read, with ids in place of keys."""
        ids = row_keys.unmix(part["keys"]) - tf.gather(self._salts, part["tables"])
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
        return self._save([row_keys.unmix(known) - tf.gather(self._salts, seen.tables), *seen])

    def _save(self, values: Sequence[Any]) -> Any:
        specs = [""] * len(values)
        return tf.raw_ops.SaveV2(
            prefix=self._fed.path, tensor_names=self._fed.names, shape_and_slices=specs, tensors=list(values)
        )

    def _make_head(self) -> Any:
        updates = tf.reduce_max(tf.stack(self._updates_copied))
        limits = tf.constant([table.expire for table in self._stores[0].all_tables], tf.int64)
        names = [f"{self._name}/{each}" for each in ("tables", "expire", "updates", "parts")]
        return self._fed.save(self._head_ending, names, [tf.constant(self._tables), limits, updates, self._parts])

    def _read(self, dtypes: Sequence[Any]) -> List[Any]:
        specs = [""] * len(dtypes)
        read: List[Any] = tf.raw_ops.RestoreV2(
            prefix=self._fed.path, tensor_names=self._fed.names, shape_and_slices=specs, dtypes=list(dtypes)
        )
        return read

    def _make_load(self) -> Any:
        """Make the operation that gives the rows of one part to their servers."""
        columns = self._shaped(dict(zip(self._columns, self._read(list(self._columns.values())))))
        shares = self._shares(columns)
        return tf.group(*[store.put(*share) for store, *share in zip(self._stores, *shares)])

    def _make_load_seen(self) -> Any:
        """Make the operation that gives the counts of one part to their servers."""
        columns = self._shaped(dict(zip(("ids", "tables", "counts"), self._read([tf.int64, tf.int32, tf.int64]))))
        written = []
        for store, *share in zip(self._stores, *self._shares(columns)):
            with tf.device(store.device):
                written.append(store.candidates.write(*share))
        return tf.group(*written)

    def _shares(self, columns: Dict[str, Any]) -> List[List[Any]]:
        """Return keys, the numbers of their tables, and all other columns, each sorted out by server."""
        columns["tables"] = tf.gather(self._places, columns["tables"])
        is_ours = columns["tables"] >= 0
        kept = {name: tf.boolean_mask(value, is_ours) for name, value in columns.items()}
        tables = kept.pop("tables")
        return by_server(kept.pop("ids"), tables, list(kept.values()), self._salts, len(self._stores))

    def _shaped(self, columns: Dict[str, Any]) -> Dict[str, Any]:
        for name, value in columns.items():
            value.set_shape([None, self._widths[name]] if name in self._widths else [None])
        return columns

    def _make_load_updates(self) -> Any:
        (updates,) = self._read([tf.int64])
        return tf.group(*[tf.assign(store.updates, tf.reshape(updates, [])).op for store in self._stores])

    # -- writing

    def rows(self, session: Any, piece_bytes: int, is_delta: bool, between_steps: bool = True) -> Iterator[Write]:
        """Yield what writes each part of the rows.

        Args:
          is_delta: whether to write only rows that have changed since the last call that came to its end, as further
            parts.
          between_steps: whether this process takes no step meanwhile. Else rows that change meanwhile are left out, or
            written with old values; the next call writes all of these.
        """
        after = self._saved if is_delta else [NO_UPDATE] * len(self._stores)
        self._number = self._number if is_delta else 0
        unsure = self._in_flight if between_steps else max(self._in_flight, _ONE_STEP)
        newest = session.run(self._updates)  # before rows are read
        size = max(1, piece_bytes // self._row_bytes)
        for index, (write, since) in enumerate(zip(self._write, after)):
            until = LAST_UPDATE if between_steps else int(newest[index])
            bounds = self._bounds(session, index, {self._after: since, self._until: until}, size)
            for begin, end in zip(bounds, bounds[1:]):
                feed = {self._begin: begin, self._end: end, self._after: since, self._until: until}
                yield Write(write, {**feed, self._fed.names: self._of_part(self._number)}, has_rows=True)
                self._number += 1
        self._saved = [max(0, each - unsure) for each in newest]

    def bytes(self, session: Any) -> int:
        """Return the bytes of all rows, at most."""
        return self._row_bytes * int(sum(session.run([store.places.count for store in self._stores])))

    def _bounds(self, session: Any, index: int, chosen: Dict[Any, int], size: int) -> List[int]:
        """Return places of a store between each two of which there are ``size`` rows or fewer to write."""
        if chosen[self._after] == NO_UPDATE:  # all rows: the server need not look through them
            count = int(session.run(self._stores[index].places.count))
            return [*range(0, count, size), count]
        found: List[int] = session.run(self._changed[index], {**chosen, self._size: size}).tolist()
        return found

    def last(self, is_rehearsal: bool = False) -> Tuple[List[Any], Dict[Any, Any], List[str]]:
        """Return operations for all rows that have changed since ``rows``, what these are fed, and their pieces.

        The operations run at once, and return the updates of each store, which ``note_last`` gets. A piece is named by
        what it adds to the path; the first is no piece with rows. In a rehearsal no row has changed.
        """
        after = [LAST_UPDATE] * len(self._stores) if is_rehearsal else self._saved
        feed: Dict[Any, Any] = {self._parts: self._number + len(self._stores)}
        for number, (each, write, since) in enumerate(zip(self._last, self._last_writes, after), self._number):
            feed.update({each.after: since, write.names: self._of_part(number)})
        return (
            [
                self._write_last_head,
                [(write.operation, each.updates) for write, each in zip(self._last_writes, self._last)],
            ],
            feed,
            [self._head_ending, *(f"-{self._name}-{index}" for index in range(len(self._last)))],
        )

    def note_last(self, ran: Sequence[Any]) -> None:
        """Note that what ``last`` has returned was run, and returned this."""
        _, written = ran
        self._number += len(written)
        self._saved = [max(0, int(updates) - self._in_flight) for _, updates in written]

    def counts(self) -> Iterator[Write]:
        """Yield the same of what was counted of ids without a row."""
        for index, write in enumerate(self._write_seen):
            yield Write(write, {self._fed.names: self._of_seen(index)})
        if self._counts:
            number = {self._parts: len(self._write_seen), self._fed.names: [f"{self._name}/seen"]}
            yield Write(self._write_number, number)

    def rest(self) -> Iterator[Write]:
        """Yield the same of what belongs to the rows; the number of parts comes last."""
        yield from self.counts()
        yield Write(self._write_head, {self._parts: self._number}, self._head_ending)

    def _of_part(self, number: int) -> List[str]:
        return [f"{self._name}/part_{number}/{column}" for column in self._columns]

    def _of_seen(self, index: int) -> List[str]:
        return [f"{self._name}/seen_{index}/{column}" for column in ("ids", "tables", "counts")]

    # -- reading

    def loads(self, reader: Any) -> Iterator[_Step]:
        """Yield the operations that give the servers the rows of a checkpoint, in place of theirs."""
        stored = [name.decode() for name in reader.get_tensor(f"{self._name}/tables")]
        places = [self._tables.index(name) if name in self._tables else -1 for name in stored]
        yield self._clear, {}
        yield self._load_updates, {self._fed.names: [f"{self._name}/updates"]}
        for number in reversed(range(int(reader.get_tensor(f"{self._name}/parts")))):
            yield self._load, {self._places: places, self._fed.names: self._of_part(number)}
        if self._counts and f"{self._name}/seen" in reader.get_variable_to_shape_map():
            for index in range(int(reader.get_tensor(f"{self._name}/seen"))):
                yield self._load_seen, {self._places: places, self._fed.names: self._of_seen(index)}

    def refuse_others(self, reader: Any) -> None:
        """Refuse a checkpoint without one of the tables, or of another optimizer or width, or without a part.

        Raises:
          tf.errors.NotFoundError, tf.errors.InvalidArgumentError: it is such a checkpoint.
        """
        shapes = reader.get_variable_to_shape_map()
        stored = []
        if f"{self._name}/tables" in shapes:
            stored = [name.decode() for name in reader.get_tensor(f"{self._name}/tables")]
        for name in self._tables:
            if name not in stored:
                raise tf.errors.NotFoundError(None, None, f"Key {name} {NOT_IN_CHECKPOINT} (an embedding table)")
        for number in range(int(reader.get_tensor(f"{self._name}/parts"))):
            for column, name in zip(self._columns, self._of_part(number)):
                expected = [self._widths[column]] if column in self._widths else []
                found = list(shapes[name][1:]) if name in shapes else "nothing"
                if found != expected:
                    raise tf.errors.InvalidArgumentError(
                        None, None, f"{name}: expected rows of shape {expected}, found {found}"
                    )
            if "slots" not in self._columns and f"{self._name}/part_{number}/slots" in shapes:
                raise tf.errors.InvalidArgumentError(
                    None, None, f"{self._name}: expected no optimizer's slots, found some"
                )


def by_server(ids: Any, tables: Any, others: Sequence[Any], salts: Any, servers: int) -> List[List[Any]]:
    """Return the keys of ids [n] of tables [n], these tables, and other columns [n, …], each sorted out by server.

    Args:
      salts: of all tables, in the order of their numbers, int64 [tables].
    """
    found = row_keys.mix(ids + tf.gather(salts, tables))
    owner = row_keys.owners(found, servers)
    return [tf.dynamic_partition(each, owner, servers) for each in (found, tables, *others)]


def saved_tables(stores: Optional[Stores], fed: Fed) -> List[SavedTables]:
    """Return what saves each kind of stores; nothing where a model has no tables."""
    kinds = stores.by_kind.items() if stores else ()
    return [SavedTables(kind, of_kind, fed) for kind, of_kind in kinds]
