"""Embedding tables in a checkpoint: the rows that there are, in parts of any length, with their ids.

For the tables of one width that share an optimizer, such as ``embeddings_16``, a checkpoint has:

    embeddings_16/tables         their names, string [tables]
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
"""

from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from cluster.checkpoints.pieces_of_variables import Fed
from cluster.runtime.tf_compat import tf
from cluster.tables import keys
from cluster.tables.store import Store
from cluster.tables.stores import Kind, Stores

_Step = Tuple[Any, Dict[Any, Any]]  # an operation, and what it is fed


class SavedTables:
    """Save and restore the stores of one kind.

    Make it on the device of the process that writes the files.

    Args:
      missing: the words by which callers know that a checkpoint lacks something.
    """

    def __init__(self, kind: Kind, stores: Sequence[Store], fed: Fed, missing: str):
        self._name, self._stores, self._fed, self._missing = kind.name, list(stores), fed, missing
        self._tables = [table.name for table in stores[0].all_tables]
        self._salts = tf.constant([keys.salt(name) for name in self._tables], tf.int64)
        self._columns = {"ids": tf.int64, "tables": tf.int32, "used": tf.int32, "rows": tf.float32}
        if stores[0].slots is not None:
            self._columns["slots"] = tf.float32
        self._widths = {"rows": kind.width, "slots": kind.width * len(stores[0].kept)}
        self._row_bytes = stores[0].row_bytes
        self._begin, self._end = (tf.placeholder(tf.int64, []) for _ in range(2))
        self._parts = tf.placeholder(tf.int64, [])
        self._places = tf.placeholder(tf.int32, [None])  # of the checkpoint's tables among these; -1: not among them
        self._write = [self._make_write(store) for store in self._stores]
        self._write_head, self._write_number = self._make_head(), self._save([self._parts])
        self._load, self._load_updates = self._make_load(), self._make_load_updates()
        self._counts = any(table.admit > 1 for table in stores[0].all_tables)
        self._write_seen = [self._make_write_seen(store) for store in self._stores] if self._counts else []
        self._load_seen = self._make_load_seen() if self._counts else None
        self._clear = tf.group(*[store.first() for store in self._stores])

    def _make_write(self, store: Store) -> Any:
        part = store.live_part(self._begin, self._end)
        ids = keys.unmix(part["keys"]) - tf.gather(self._salts, part["tables"])
        return self._save([ids, *(part[name] for name in self._columns if name != "ids")])

    def _make_write_seen(self, store: Store) -> Any:
        with tf.device(store.device):
            known, seen = store.candidates.all()
        return self._save([keys.unmix(known) - tf.gather(self._salts, seen.tables), *seen])

    def _save(self, values: Sequence[Any]) -> Any:
        specs = [""] * len(values)
        return tf.raw_ops.SaveV2(
            prefix=self._fed.path, tensor_names=self._fed.names, shape_and_slices=specs, tensors=list(values)
        )

    def _make_head(self) -> Any:
        updates = tf.reduce_max(tf.stack([store.updates for store in self._stores]))
        return self._save([tf.constant(self._tables), updates, self._parts])

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
        found = keys.mix(kept.pop("ids") + tf.gather(self._salts, tables))
        owner = keys.owners(found, len(self._stores))
        return [tf.dynamic_partition(each, owner, len(self._stores)) for each in (found, tables, *kept.values())]

    def _shaped(self, columns: Dict[str, Any]) -> Dict[str, Any]:
        for name, value in columns.items():
            value.set_shape([None, self._widths[name]] if name in self._widths else [None])
        return columns

    def _make_load_updates(self) -> Any:
        (updates,) = self._read([tf.int64])
        return tf.group(*[tf.assign(store.updates, tf.reshape(updates, [])).op for store in self._stores])

    # -- writing

    def writes(self, session: Any, piece_bytes: int) -> Iterator[_Step]:
        """Yield for each part the operation that writes it, and what that is fed; the number of parts comes last."""
        number, rows = 0, max(1, piece_bytes // self._row_bytes)
        counts = session.run([store.places.count for store in self._stores])
        for write, count in zip(self._write, counts):
            for begin in range(0, int(count), rows):
                feed = {self._begin: begin, self._end: min(begin + rows, int(count))}
                yield write, {**feed, self._fed.names: self._of_part(number)}
                number += 1
        for index, write in enumerate(self._write_seen):
            yield write, {self._fed.names: self._of_seen(index)}
        if self._counts:
            yield self._write_number, {self._parts: len(self._write_seen), self._fed.names: [f"{self._name}/seen"]}
        names = [f"{self._name}/{each}" for each in ("tables", "updates", "parts")]
        yield self._write_head, {self._parts: number, self._fed.names: names}

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
        for number in range(int(reader.get_tensor(f"{self._name}/parts"))):
            yield self._load, {self._places: places, self._fed.names: self._of_part(number)}
        if self._counts and f"{self._name}/seen" in reader.get_variable_to_shape_map():
            for index in range(int(reader.get_tensor(f"{self._name}/seen"))):
                yield self._load_seen, {self._places: places, self._fed.names: self._of_seen(index)}
        yield self._load_updates, {self._fed.names: [f"{self._name}/updates"]}

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
                raise tf.errors.NotFoundError(None, None, f"Key {name} {self._missing} (an embedding table)")
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


def saved_tables(stores: Optional[Stores], fed: Fed, missing: str) -> List[SavedTables]:
    """Return what saves each kind of stores; nothing where a model has no tables."""
    kinds = stores.by_kind.items() if stores else ()
    return [SavedTables(kind, of_kind, fed, missing) for kind, of_kind in kinds]
