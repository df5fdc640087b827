"""Embedding tables of a checkpoint in one process, which finds them, reads them part by part, and looks up rows.

``saved_tables`` describes the tables of a checkpoint.

A frozen table answers lookups, and no lookup changes it. It is a sorted list of ids, the place of each id's row, and
the rows. A lookup searches for its ids in the list, by plain operations of TensorFlow. So a graph with frozen tables
needs neither this project's code nor a parameter server.
"""

from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Sequence

import numpy as np

from cluster.checkpoints.finished_files import NOT_IN_CHECKPOINT
from cluster.recommend.tables.initializers import first_values
from cluster.recommend.tables.lookups import Table
from cluster.recommend.tables.row_keys import mix
from cluster.recommend.tables.splitmix import salt
from cluster.runtime.tensors import where_true
from cluster.runtime.tf_compat import tf


def part_names(store: str, number: int, columns: Iterable[str]) -> List[str]:
    """Return the names, in a checkpoint, of the given ``columns`` in part ``number`` of ``store``."""
    return [f"{store}/part_{number}/{column}" for column in columns]


def seen_names(store: str, number: int) -> List[str]:
    """Return the names, in a checkpoint, of the columns about ids without a row, in their part ``number``."""
    return [f"{store}/seen_{number}/{column}" for column in ("ids", "tables", "counts")]


class StoredTable(NamedTuple):
    """One table in a checkpoint.

    ``store`` is the store that has this table and others, such as ``embeddings_16``. ``number`` is the index of the
    table in the store. ``parts`` is how many parts the store has. ``expire``: the number of steps without an id
    after which the id's row expired in the run that wrote the checkpoint; 0 for never. ``floors``: for each part, the
    number of the oldest update whose rows are valid.
    """

    name: str
    width: int
    store: str
    number: int
    parts: int
    expire: int = 0
    floors: Sequence[int] = ()


def floors_in(reader: Any, store: str) -> np.ndarray:
    """Return the floors of a store's parts and tables in a checkpoint, int64 [parts, tables]; 0 without bounds."""
    parts = int(reader.get_tensor(f"{store}/parts"))
    if not reader.has_tensor(f"{store}/floors"):
        return np.zeros([parts, len(reader.get_tensor(f"{store}/tables"))], np.int64)
    owners = reader.get_tensor(f"{store}/owners")
    if len(owners) != parts:
        text = f"{store}/owners: expected a server for each of {parts} parts, found {len(owners)}"
        raise tf.errors.InvalidArgumentError(None, None, text)
    floors: np.ndarray = reader.get_tensor(f"{store}/floors")[owners]
    return floors


def stored_tables(reader: Any) -> Dict[str, StoredTable]:
    """Return the tables of a checkpoint, by name."""
    names = reader.get_variable_to_shape_map()
    stores = sorted(name[: -len("/tables")] for name in names if name.endswith("/tables"))
    found: Dict[str, StoredTable] = {}
    for store in stores:
        if store.startswith("embeddings_") and {f"{store}/parts", f"{store}/updates"} <= set(names):
            width, parts = int(store.rpartition("_")[2]), int(reader.get_tensor(f"{store}/parts"))
            tables = reader.get_tensor(f"{store}/tables")
            limits = reader.get_tensor(f"{store}/expire") if f"{store}/expire" in names else np.zeros(len(tables))
            floors = floors_in(reader, store).T.tolist()
            for number, (name, limit) in enumerate(zip(tables, limits)):
                of = {"expire": int(limit), "floors": floors[number]}
                found[name.decode()] = StoredTable(name.decode(), width, store, number, parts, **of)
    return found


class StoredRows:
    """The valid rows of a table in a checkpoint: the last row of each id, unless this row has expired.

    Args:
      expire: the number of steps without an id after which the id's row expires; 0 for never.

    Attributes:
      ids: the ids of the rows, int64 [n], ascending.
      places: the place of each id's row among the rows of all parts, int64 [n].
      ends: the number of rows in each part and all parts before it, valid or not, int64 [parts].
      width: the length of a row.
    """

    def __init__(self, reader: Any, table: StoredTable, expire: int):
        self._reader, self._table, self.width = reader, table, table.width
        tables = [self._column(number, "tables") for number in range(table.parts)]
        self.ends = np.cumsum([len(each) for each in tables], dtype=np.int64)
        own = np.flatnonzero(np.concatenate([np.zeros([0], np.int32), *tables]) == table.number)
        self.ids, last = np.unique(self._whole("ids", np.int64)[own][::-1], return_index=True)
        self.places = own[len(own) - 1 - last]
        if expire or any(table.floors):
            used = self._whole("used", np.int64)[self.places]
            floors = np.repeat(np.array(table.floors, np.int64), [len(each) for each in tables])
            age = int(reader.get_tensor(f"{table.store}/updates")) + 1 - used
            is_live = (used >= floors[self.places]) & ((age <= expire) if expire else True)
            self.ids, self.places = self.ids[is_live], self.places[is_live]

    @property
    def in_parts(self) -> np.ndarray:
        """Return the ids of the rows in the order of ``parts``, int64 [n]."""
        return self._whole("ids", np.int64)[np.sort(self.places)]

    def parts(self) -> Iterator[np.ndarray]:
        """Yield the valid rows of each part of the checkpoint in turn, float32 [some, width]."""
        places, begin = np.sort(self.places), 0
        for number, cut in enumerate(np.searchsorted(places, self.ends)):
            yield self.part(number)[places[begin:cut] - (self.ends[number - 1] if number else 0)]
            begin = cut

    def part(self, number: int) -> np.ndarray:
        """Return all rows of one part, valid or not, float32 [some, width]."""
        return self._column(number, "rows")

    def _whole(self, name: str, dtype: Any) -> np.ndarray:
        """Return a column of all parts."""
        parts = [self._column(number, name) for number in range(self._table.parts)]
        return np.concatenate([np.zeros([0], dtype), *parts])

    def _column(self, number: int, name: str) -> np.ndarray:
        (full_name,) = part_names(self._table.store, number, [name])
        found: np.ndarray = self._reader.get_tensor(full_name)
        return found


PIECE_BYTES = 1 << 30  # of rows in one variable: TensorFlow copies no tensor of 2 GiB from process to process
LAST = np.iinfo(np.int64).max  # ends the list, so that an id is at or after any other


class FrozenTable:
    """One read-only table on the current device; it is empty until ``load`` gives it rows.

    Args:
      pieces: the number of variables that hold the rows.

    Attributes:
      size: the number of rows that the last ``load`` has given to the table.
    """

    def __init__(self, table: Table, pieces: int = 1):
        self.table, self.size = table, 0
        with tf.name_scope(None), tf.control_dependencies(None):
            self._ids = _variable(f"{table.name}/ids", np.array([LAST]))
            self._places = _variable(f"{table.name}/places", np.array([-1]))
            nothing = np.zeros([0, table.width], np.float32)
            self._rows = [_variable(f"{table.name}/rows_{index}", nothing) for index in range(pieces)]

    @property
    def variables(self) -> List[Any]:
        """Return all variables of the table, which are in no collection of TensorFlow."""
        return [self._ids, self._places, *self._rows]

    def look_up(self, ids: Any) -> Any:
        """Return the rows of ``ids`` [n], float32 [n, width]; for an id without a row, its first value."""
        sorted_ids = self._ids.read_value()
        at = tf.raw_ops.LowerBound(sorted_inputs=sorted_ids[tf.newaxis], values=ids[tf.newaxis], out_type=tf.int64)[0]
        places = tf.gather(self._places, at)
        has_row = tf.equal(tf.gather(sorted_ids, at), ids) & (places >= 0)
        known, unknown = (where_true(each) for each in (has_row, tf.logical_not(has_row)))
        values = [self._take(tf.gather(places, known)), self._first(tf.gather(ids, unknown))]
        found = tf.dynamic_stitch([tf.cast(each, tf.int32) for each in (known, unknown)], values)
        return tf.reshape(found, [tf.size(ids), self.table.width])

    def _first(self, ids: Any) -> Any:
        return first_values([self.table], mix(ids + salt(self.table.name)), tf.zeros_like(ids, tf.int32))

    def _take(self, places: Any) -> Any:
        if len(self._rows) == 1:
            return tf.gather(self._rows[0], places)
        of_a_piece = tf.maximum(tf.shape(self._rows[0], out_type=tf.int64)[0], 1)
        owner = tf.cast(places // of_a_piece, tf.int32)
        asked = tf.dynamic_partition(places % of_a_piece, owner, len(self._rows))
        back = tf.dynamic_partition(tf.range(tf.size(places)), owner, len(self._rows))
        return tf.dynamic_stitch(back, [tf.gather(rows, some) for rows, some in zip(self._rows, asked)])

    def load(self, session: Any, ids: np.ndarray, rows: Iterable[np.ndarray]) -> None:
        """Replace the rows of the table.

        Args:
          ids: the id of each new row, int64 [n], all different.
          rows: arrays float32 [some, width], which together have the n new rows in the order of ``ids``.
        """
        self.size, order = len(ids), np.argsort(ids, kind="stable")
        give(session, self._ids, np.append(ids[order], LAST))
        give(session, self._places, np.append(order, -1))
        size = -(-len(ids) // len(self._rows))
        sizes = [max(0, min(size, len(ids) - index * size)) for index in range(len(self._rows))]
        for variable, piece in zip(self._rows, joined(rows, sizes, self.table.width)):
            give(session, variable, piece)


class FrozenTables:
    """The frozen (read-only) tables of a graph; ``look_up`` is a source for ``cluster.steps.extension.rows_from``.

    Args:
      device: the device of the tables.
      pieces: returns the number of variables for the rows of a table.

    Attributes:
      all: the tables by name, in the order of their first lookups.
    """

    def __init__(self, device: str, pieces: Callable[[Table], int] = lambda table: 1):
        self._device, self._pieces = device, pieces
        self.all: Dict[str, FrozenTable] = {}

    def look_up(self, table: Table, ids: Any) -> Any:
        """Return the rows of ``ids`` [n] in ``table``, [n, width]; the first lookup in a table creates it."""
        with tf.device(self._device):
            if table.name not in self.all:
                self.all[table.name] = FrozenTable(table, self._pieces(table))
            return self.all[table.name].look_up(ids)

    def load(self, session: Any, reader: Any) -> None:
        """Give all tables their rows from a checkpoint.

        Raises:
          tf.errors.NotFoundError: the checkpoint has no table with the name of one of the tables.
          tf.errors.InvalidArgumentError: a table has another width in the checkpoint.
        """
        stored = stored_tables(reader)
        for each, found in [(each, table_in(stored, each.table)) for each in self.all.values()]:
            rows = StoredRows(reader, found, each.table.expire)
            each.load(session, rows.in_parts, rows.parts())


def table_in(stored: Mapping[str, StoredTable], table: Table) -> StoredTable:
    """Return ``table`` among the tables of a checkpoint.

    Raises:
      tf.errors.NotFoundError, tf.errors.InvalidArgumentError: the checkpoint lacks the table, or has another width.
    """
    found = stored.get(table.name)
    if found is None:
        raise tf.errors.NotFoundError(None, None, f"Key {table.name} {NOT_IN_CHECKPOINT} (an embedding table)")
    if found.width != table.width:
        text = f"{table.name}: expected rows of {table.width} numbers in the checkpoint, found {found.width}"
        raise tf.errors.InvalidArgumentError(None, None, text)
    return found


def joined(parts: Iterable[np.ndarray], sizes: Sequence[int], width: int) -> Iterator[np.ndarray]:
    """Yield the rows of all ``parts``, in order, as arrays whose numbers of rows are ``sizes``.

    Only one such array is in memory at a time.
    """
    source, rest = iter(parts), np.zeros([0, width], np.float32)
    for size in sizes:
        piece, filled = np.empty([size, width], np.float32), 0
        while filled < size:
            rest = rest if len(rest) else next(source)
            taken = rest[: size - filled]
            piece[filled : filled + len(taken)] = taken
            filled, rest = filled + len(taken), rest[len(taken) :]
        yield piece


def _variable(name: str, first: np.ndarray) -> Any:
    """Make a resource of which the first dimension may change."""
    shape = [None, *first.shape[1:]]
    value = tf.placeholder_with_default(first, shape)
    return tf.Variable(
        value, trainable=False, collections=[], name=name, use_resource=True, shape=tf.TensorShape(shape)
    )


def give(session: Any, variable: Any, value: np.ndarray) -> None:
    """Let a variable have ``value``, which may have another first dimension than before."""
    session.run(variable.initializer, {variable.initializer.inputs[1]: value})
