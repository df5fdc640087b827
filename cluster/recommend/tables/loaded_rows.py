"""Loading of a checkpoint's rows into the servers, one part at a time, also into tables with other names.

A checkpoint has the ids of its rows. So a row gets the key that belongs to its id and to its table's name in this
model, and goes to the server that has this key, whatever the number of servers. ``saved_tables`` describes a
checkpoint's rows.
"""

from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

import numpy as np

from cluster.checkpoints.finished_files import NOT_IN_CHECKPOINT
from cluster.checkpoints.pieces_of_variables import Fed, Step
from cluster.checkpoints.row_pieces import SavedRows
from cluster.checkpoints.warm_start import WarmRows
from cluster.errors import TrainingError
from cluster.recommend.tables import row_keys
from cluster.recommend.tables.row_floors import TICKS
from cluster.recommend.tables.store import Store
from cluster.recommend.tables.stored_tables import StoredTable, floors_in, part_names, seen_names, stored_tables
from cluster.runtime.tf_compat import tf

_COLUMNS = {"ids": tf.int64, "tables": tf.int32, "used": tf.int32, "rows": tf.float32}
_SEEN = {"ids": tf.int64, "tables": tf.int32, "counts": tf.int64}


def _read(fed: Fed, columns: Mapping[str, Any], widths: Mapping[str, int]) -> Dict[str, Any]:
    """Return columns of the part that is fed, [n] or [n, width] each."""
    read = tf.raw_ops.RestoreV2(
        prefix=fed.path, tensor_names=fed.names, shape_and_slices=[""] * len(columns), dtypes=list(columns.values())
    )
    for name, column in zip(columns, read):
        column.set_shape([None, widths[name]] if name in widths else [None])
    return dict(zip(columns, read))


def _is_below(floors: Any, part: Mapping[str, Any]) -> Any:
    """Return whether each row of a part is below the floor of its table, so that it has gone, bool [n]."""
    return tf.cast(part["used"], tf.int64) < tf.gather(floors, part["tables"])


def _shares(stores: Sequence[Store], part: Mapping[str, Any], tables: Any) -> Iterator[Tuple[Store, Sequence[Any]]]:
    """Yield each store with its share of a part: keys, the numbers of their tables here, and the other columns.

    Args:
      part: the columns of a checkpoint, in their order.
      tables: of the rows, by their numbers here, int32 [n]; -1 for a row that is left out.
    """
    kept = [value for name, value in part.items() if name != "tables"]
    ids, tables, *others = (tf.boolean_mask(each, tables >= 0) for each in [kept[0], tables, *kept[1:]])
    keys = row_keys.keys_of(ids, tables, row_keys.salts(stores[0].all_tables))
    owner = row_keys.owners(keys, len(stores))
    dealt = [tf.dynamic_partition(each, owner, len(stores)) for each in (keys, tables, *others)]
    return zip(stores, zip(*dealt))


def _put(stores: Sequence[Store], part: Mapping[str, Any], tables: Any) -> Any:
    """Make the operation that gives rows of a part to their servers."""
    return tf.group(*[store.put(*share) for store, share in _shares(stores, part, tables)])


class LoadedTables(SavedRows):
    """The operations that restore one kind of stores; create them on the device of the process that reads the files."""

    def __init__(self, name: str, stores: Sequence[Store], fed: Fed):
        self._name, self._stores, self._fed = name, list(stores), fed
        self._tables = [table.name for table in stores[0].all_tables]
        self._kept = [slot.name for slot in stores[0].kept]
        self._widths = {"rows": stores[0].width, "slots": stores[0].width * len(stores[0].kept)}
        self._columns = _COLUMNS if stores[0].slots is None else {**_COLUMNS, "slots": tf.float32}
        self._counts = any(table.admit > 1 for table in stores[0].all_tables)
        self._places = tf.placeholder(tf.int32, [None])  # of the checkpoint's tables among these; -1: not among them
        self._floors = tf.placeholder(tf.int64, [None])  # of the checkpoint's tables, in the part
        part = _read(fed, self._columns, self._widths)
        places = tf.gather(self._places, part["tables"])
        is_gone = _is_below(self._floors, part)
        self._load = _put(self._stores, part, tf.where(is_gone, -tf.ones_like(places), places))
        self._load_seen = self._make_load_seen() if self._counts else None
        updates = tf.reshape(fed.read(tf.int64), [])
        self._load_updates = tf.group(*[tf.assign(store.updates, updates).op for store in self._stores])
        self._clear = tf.group(*[store.first() for store in self._stores])
        self._seconds = self._stores[0].ages.seconds
        self._load_ages = self._make_load_ages() if self._seconds.any() else None

    def _make_load_seen(self) -> Any:
        """Make the operation that gives the counts of one part to their servers."""
        part = _read(self._fed, _SEEN, {})
        written = []
        for store, share in _shares(self._stores, part, tf.gather(self._places, part["tables"])):
            with tf.device(store.device):
                written.append(store.candidates.write(*share))
        return tf.group(*written)

    def _make_load_ages(self) -> Any:
        """Make the operation with which the servers go on to count the time of their rows."""
        self._ticks, self._ages = tf.placeholder(tf.int64, [None, None]), tf.placeholder(tf.float64, [None])
        loaded = []
        for store in self._stores:
            with tf.device(store.device):
                loaded.append(store.ages.load(self._ticks, self._ages))
        return tf.group(*loaded)

    def loads(self, reader: Any) -> Iterator[Step]:
        """Yield the operations, with their feeds, that replace the servers' rows by the rows of a checkpoint."""
        stored = [name.decode() for name in reader.get_tensor(f"{self._name}/tables")]
        places = [self._tables.index(name) if name in self._tables else -1 for name in stored]
        yield self._clear, {}
        yield self._load_updates, {self._fed.names: [f"{self._name}/updates"], self._fed.spec: [""]}
        if self._load_ages is not None:
            yield self._load_ages, dict(zip((self._ticks, self._ages), self._ages_in(reader, places)))
        floors = floors_in(reader, self._name)
        for number in reversed(range(len(floors))):
            feed = {self._places: places, self._floors: floors[number]}
            yield self._load, {**feed, self._fed.names: part_names(self._name, number, self._columns)}
        if self._counts and f"{self._name}/seen" in reader.get_variable_to_shape_map():
            for index in range(int(reader.get_tensor(f"{self._name}/seen"))):
                yield self._load_seen, {self._places: places, self._fed.names: seen_names(self._name, index)}

    def _ages_in(self, reader: Any, places: Sequence[int]) -> Tuple[np.ndarray, np.ndarray]:
        """Return ticks and ages of these tables in a checkpoint; as of a new table where the time was another."""
        ticks, ages = np.zeros([len(self._tables), TICKS], np.int64), np.zeros(len(self._tables))
        if reader.has_tensor(f"{self._name}/ticks"):
            columns = [reader.get_tensor(f"{self._name}/{each}") for each in ("seconds", "ticks", "ages")]
            for place, seconds, stored, age in zip(places, *columns):
                if place >= 0 and seconds == self._seconds[place]:
                    ticks[place], ages[place] = stored, age
        return ticks, ages

    def refuse_others(self, reader: Any) -> None:
        """Refuse a checkpoint whose rows do not fit the tables.

        Raises:
          tf.errors.NotFoundError: the checkpoint lacks one of the tables.
          tf.errors.InvalidArgumentError: the checkpoint lacks a part of the rows, has rows of another width, or has the
            slots of another optimizer.
        """
        shapes = reader.get_variable_to_shape_map()
        stored = []
        if f"{self._name}/tables" in shapes:
            stored = [name.decode() for name in reader.get_tensor(f"{self._name}/tables")]
        for name in self._tables:
            if name not in stored:
                raise tf.errors.NotFoundError(None, None, f"Key {name} {NOT_IN_CHECKPOINT} (an embedding table)")
        if f"{self._name}/kept" in shapes:
            kept = [name.decode() for name in reader.get_tensor(f"{self._name}/kept")]
            if kept != self._kept:
                text = f"{self._name}: expected rows with the slots {self._kept} of this optimizer, found {kept}"
                raise tf.errors.InvalidArgumentError(None, None, text)
        for number in range(int(reader.get_tensor(f"{self._name}/parts"))):
            for column, name in zip(self._columns, part_names(self._name, number, self._columns)):
                expected = [self._widths[column]] if column in self._widths else []
                found = list(shapes[name][1:]) if name in shapes else "nothing"
                if found != expected:
                    raise tf.errors.InvalidArgumentError(
                        None, None, f"{name}: expected rows of shape {expected}, found {found}"
                    )
            if "slots" not in self._columns and f"{self._name}/part_{number}/slots" in shapes:
                raise tf.errors.InvalidArgumentError(
                    None, None, f"{self._name}: expected rows without optimizer slots, found slots"
                )


class Round(NamedTuple):
    """One pass over all parts of a store in a checkpoint.

    ``numbers`` maps the number of a table in the checkpoint to the number of the table in this model that gets its
    rows. ``limits`` maps the number of a table in the checkpoint to its expiry there: the number of steps without an id
    after which the id's row expires; 0 for never.
    """

    store: str
    parts: int
    numbers: Dict[int, int]
    limits: Dict[int, int]


def rounds(sources: Mapping[int, StoredTable]) -> List[Round]:
    """Return the rounds that load the rows of ``sources`` into tables, as few as possible for each store.

    Args:
      sources: maps the number of a table in this model to the stored table with its rows. Several tables may take the
        rows of the same stored table.
    """
    found: List[Round] = []
    for number, stored in sources.items():
        fitting = [each for each in found if each.store == stored.store and stored.number not in each.numbers]
        if not fitting:
            fitting = [Round(stored.store, stored.parts, {}, {})]
            found += fitting
        fitting[0].numbers[stored.number] = number
        fitting[0].limits[stored.number] = stored.expire
    return found


class RenamedRows:
    """The operation that loads rows from another model's checkpoint into one kind of stores, on the current device.

    Only the values of rows come from the checkpoint. Every row counts as not yet updated, and its slots get their first
    values.
    """

    def __init__(self, stores: Sequence[Store], fed: Fed):
        self.tables, self._fed = [table.name for table in stores[0].all_tables], fed
        self._updates = tf.placeholder(tf.int64, [])
        self._numbers, self._limits = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int64, [None])
        self._floors = tf.placeholder(tf.int64, [None])
        part = _read(fed, _COLUMNS, {"rows": stores[0].width})
        stored, used = part["tables"], part["used"]
        is_gone = self._expired(stored, used) | _is_below(self._floors, part)
        tables = tf.where(is_gone, -tf.ones_like(stored), tf.gather(self._numbers, stored))
        self._load = _put(stores, {**part, "used": tf.zeros_like(used)}, tables)

    def _expired(self, stored: Any, used: Any) -> Any:
        limits = tf.gather(self._limits, stored)
        return (limits > 0) & (self._updates + 1 - tf.cast(used, tf.int64) > limits)

    def loads(self, reader: Any, sources: Mapping[str, StoredTable]) -> Iterator[Step]:
        """Yield, for each part of the checkpoint, the operation and its feeds except the path.

        Args:
          sources: maps the name of each table that gets rows to the stored table with these rows.
        """
        numbered = {number: sources[name] for number, name in enumerate(self.tables) if name in sources}
        for each in rounds(numbered):
            there = range(len(reader.get_tensor(f"{each.store}/tables")))
            feed = {
                self._updates: reader.get_tensor(f"{each.store}/updates"),
                self._numbers: [each.numbers.get(number, -1) for number in there],
                self._limits: [each.limits.get(number, 0) for number in there],
            }
            floors = floors_in(reader, each.store)
            for part in reversed(range(each.parts)):  # of an id in several parts the last row counts
                names = part_names(each.store, part, _COLUMNS)
                yield self._load, {**feed, self._floors: floors[part], self._fed.names: names}


class WarmTables(WarmRows):
    """The embedding tables of a model that get rows by a warm start; ``kinds`` has the stores of each kind."""

    def __init__(self, kinds: Sequence[Sequence[Store]]):
        self._kinds = kinds
        self.widths = {each.name: each.width for kind in kinds for each in kind[0].all_tables}
        self._bound = {each.name for kind in kinds for each in kind[0].all_tables if each.most}

    def stored(self, reader: Any) -> Dict[str, int]:
        """Return the widths of the tables in a checkpoint, by name."""
        return {name: each.width for name, each in stored_tables(reader).items()}

    def make_loads(self, fed: Fed) -> None:
        """Make the operations of ``loads``, on the current device."""
        self._rows = [RenamedRows(each, fed) for each in self._kinds]
        self._sizes = [store.places.count for kind in self._kinds for store in kind]

    def loads(self, reader: Any, chosen: Mapping[str, str]) -> Iterator[Step]:
        """Yield the operations, with their feeds, that give tables their rows from a checkpoint.

        Args:
          chosen: maps the name of a table in this model to the name of its source in the checkpoint.

        Raises:
          TrainingError: a chosen table has a bound.
        """
        for name in chosen:
            if name in self._bound:
                raise TrainingError(
                    f"train.warm_start: expected tables without embedding.at_most, found {name!r}, of whose rows none"
                    " was used last; leave the table out by only, or give it no bound in the first run"
                )
        stored = stored_tables(reader)
        sources = {name: stored[there] for name, there in chosen.items()}
        for kind in self._rows:
            yield from kind.loads(reader, sources)

    def size(self, session: Any) -> int:
        """Return the number of rows in all tables of the model together."""
        return int(sum(session.run(self._sizes)))
