"""The differences between two checkpoints, as a served model has them."""

from typing import Any, Iterable, Mapping, NamedTuple, Optional

import numpy as np

from cluster.checkpoints.finished_files import NOT_IN_CHECKPOINT
from cluster.protocol.checkpoint_files import NO_VERSION
from cluster.recommend.serving.delta_file import Delta, TableDelta
from cluster.recommend.serving.served_model import RowIndex
from cluster.recommend.tables.lookups import Table
from cluster.recommend.tables.stored_tables import StoredRows, stored_tables, table_in
from cluster.runtime.tf_compat import tf


class Version(NamedTuple):
    """A version of a model, and the reader of its checkpoint; None for the empty model of version ``0``."""

    name: str
    reader: Any


EMPTY = Version(NO_VERSION, None)


def changes(since: Version, newest: Version, tables: Iterable[Table], variables: Mapping[str, Any]) -> Delta:
    """Return all differences in ``tables`` and ``variables`` between two versions.

    The function compares values, whatever training did between the versions. This process holds the ids of a table of
    both versions in memory, and all changed rows.

    Args:
      variables: the shapes of the variables by name, lists of int.

    Raises:
      tf.errors.OpError: a checkpoint cannot be read, or belongs to another model.
    """
    values = {name: _numbers(newest.reader, name, shape) for name, shape in variables.items()}
    if since.reader is not None:
        earlier = {name: _numbers(since.reader, name, shape) for name, shape in variables.items()}
        values = {name: value for name, value in values.items() if not _same_bits(value, earlier[name])}
    old, new = (None if each.reader is None else (each.reader, stored_tables(each.reader)) for each in (since, newest))
    return Delta(since.name, newest.name, {each.name: _of_table(old, new, each) for each in tables}, values)


def value_of(reader: Any, name: str, shape: Any) -> np.ndarray:
    """Return a variable's value in a checkpoint.

    Raises:
      tf.errors.NotFoundError, tf.errors.InvalidArgumentError: the checkpoint lacks the variable, or has another shape.
    """
    if not reader.has_tensor(name):
        raise tf.errors.NotFoundError(None, None, f"Key {name} {NOT_IN_CHECKPOINT}")
    found: np.ndarray = np.asarray(reader.get_tensor(name))
    if list(found.shape) != shape:
        raise tf.errors.InvalidArgumentError(None, None, f"{name}: expected {shape}, found {list(found.shape)}")
    return found


def _numbers(reader: Any, name: str, shape: Any) -> np.ndarray:
    value = value_of(reader, name, shape)
    if value.dtype.kind not in "biufc":  # an archive of numpy has texts and bfloat16 only as other types
        raise tf.errors.InvalidArgumentError(None, None, f"{name}: expected numbers of numpy, found {value.dtype.name}")
    return value


def _same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(one.shape == other.shape and one.tobytes() == other.tobytes())


def _of_table(since: Optional[Any], newest: Any, table: Table) -> TableDelta:
    new = _rows_of(newest, table)
    changed, removed = np.ones(len(new.ids), bool), np.zeros([0], np.int64)
    if since is not None:
        old = _rows_of(since, table)
        earlier = RowIndex(old.ids, old.places).find(new.ids)
        was_there = earlier >= 0
        removed = old.ids[RowIndex(new.ids, new.places).find(old.ids) < 0]
        changed[was_there] = _differ(old, earlier[was_there], new, new.places[was_there])
    return TableDelta(new.ids[changed], _rows_at(new, new.places[changed]), removed, len(new.ids), table.initializer)


def _rows_of(checkpoint: Any, table: Table) -> StoredRows:
    """Return the rows of ``table`` in a checkpoint, which is a reader and the tables that it found."""
    reader, stored = checkpoint
    return StoredRows(reader, table_in(stored, table), table.expire)


def _differ(old: StoredRows, earlier: np.ndarray, new: StoredRows, later: np.ndarray) -> np.ndarray:
    """Return whether the rows at ``earlier`` [n] and ``later`` [n] have other bits, bool [n]."""
    # A row at one place in parts that both checkpoints share is one row: a delta checkpoint shares most of its parts.
    differ = (earlier != later) | (earlier >= _shared_rows(old, new))
    bits = (each.view(np.int32) for each in (_rows_at(old, earlier[differ]), _rows_at(new, later[differ])))
    differ[differ] = np.any(np.not_equal(*bits), axis=1)
    return differ


def _rows_at(stored: StoredRows, places: np.ndarray) -> np.ndarray:
    """Return the rows at ``places`` [n] of all parts, float32 [n, width]; one part at a time is in memory."""
    found = np.empty([len(places), stored.width], np.float32)
    parts = np.searchsorted(stored.ends, places, "right")
    for part in np.unique(parts).tolist():
        own = parts == part
        found[own] = stored.part(part)[places[own] - (stored.ends[part - 1] if part else 0)]
    return found


def _shared_rows(old: StoredRows, new: StoredRows) -> int:
    """Return the number of rows in the parts with which both checkpoints begin."""
    found = 0
    for part, (one, other) in enumerate(zip(old.ends, new.ends)):
        if one != other or not _same_bits(old.part(part), new.part(part)):
            break
        found = int(one)
    return found
