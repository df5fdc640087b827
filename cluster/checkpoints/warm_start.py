"""A warm start: variables and tables of a new run get first values from another model's checkpoint.

Only the chief reads that checkpoint, piece by piece, and sends the values to the servers. What the optimizer keeps and
the global step are not taken.
"""

from dataclasses import replace
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from cluster.checkpoints.finished_files import open_reader
from cluster.checkpoints.renamed_rows import RenamedRows
from cluster.checkpoints.stored_tables import StoredTable, stored_tables
from cluster.checkpoints.streamed_saver import StreamedSaver
from cluster.checkpoints.warm_choice import Choice, choose, find, lacking
from cluster.errors import CheckpointError
from cluster.protocol.quantity import quantity
from cluster.runtime.allocator import return_large_blocks, trim
from cluster.runtime.tf_compat import tf
from cluster.runtime.tf_errors import line_of
from cluster.tables.stores import Stores
from cluster.task import WarmStart
from cluster.variables.masters import saved_variables
from cluster.variables.saved import Saved

_DAMAGED = (tf.errors.DataLossError, tf.errors.OutOfRangeError, tf.errors.PermissionDeniedError)


class Source(NamedTuple):
    """A checkpoint that has everything that is chosen.

    ``tables``: the stored table of each chosen one, by its name in the model.
    """

    path: str
    reader: Any
    tables: Dict[str, StoredTable]


class Model:
    """The variables and tables of a model that a warm start can give values."""

    def __init__(self, settings: WarmStart, variables: Sequence[Any], stores: Optional[Stores]):
        self._settings, self.saved = settings, saved_variables(variables)
        self.kinds = list(stores.by_kind.values()) if stores else []
        self.widths = {each.name: each.width for kind in self.kinds for each in kind[0].all_tables}
        names = dict.fromkeys(each.name for each in self.saved)
        self.choice: Choice = choose(settings, names, self.widths)

    @property
    def chosen(self) -> List[Saved]:
        """Return the chosen variables, under their names in the checkpoint."""
        of = self.choice.variables
        return [replace(each, name=of[each.name]) for each in self.saved if each.name in of]

    def source(self) -> Source:
        """Find the checkpoint, and check that it has everything that is chosen.

        Raises:
          CheckpointError: it is not there, cannot be read, or lacks something, or has it of another shape or type.
        """
        path = find(self._settings.checkpoint)
        try:
            reader = open_reader(path)
            tables = stored_tables(reader)
        except tf.errors.OpError as error:
            raise _unreadable(path, error) from None
        self._refuse_other_variables(path, reader)
        self._refuse_other_tables(path, tables)
        return Source(path, reader, {name: tables[there] for name, there in self.choice.tables.items()})

    def _refuse_other_variables(self, path: str, reader: Any) -> None:
        shapes, dtypes = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
        for each in self.saved:
            there = self.choice.variables.get(each.name)
            if there is None:
                continue
            if there not in shapes:
                raise lacking(each.name, there, list(shapes), path)
            found = dtypes[there], tuple(shapes[there])
            if found != (each.dtype, each.full_shape):
                expected = _kind(each.dtype, each.full_shape)
                raise _other(path, there, f"{expected}, as {each.name!r} is here", _kind(*found))

    def _refuse_other_tables(self, path: str, stored: Dict[str, StoredTable]) -> None:
        for name, there in self.choice.tables.items():
            if there not in stored:
                raise lacking(name, there, list(stored), path)
            width, found = self.widths[name], stored[there].width
            if found != width:
                raise _other(
                    path, there, f"rows of {width} numbers, as the table {name!r} has here", f"rows of {found}"
                )


class WarmLoader:
    """The operations by which the chief gives the chosen variables and tables their values, in its graph.

    Raises:
      TrainingError: ``train.warm_start`` has a name that is none of the model's.
    """

    def __init__(self, settings: WarmStart, variables: Sequence[Any], stores: Optional[Stores], host: str):
        self._model = Model(settings, variables, stores)
        self._saver = StreamedSaver(self._model.chosen, host)
        with tf.device(host):
            self._path = tf.placeholder(tf.string, [])
            self._rows = [RenamedRows(each, self._path) for each in self._model.kinds]

    def load(self, session: Any) -> str:
        """Give the values, once all variables and tables have first values; return one line about them.

        Raises:
          CheckpointError: the checkpoint is not there, cannot be read, or does not fit.
        """
        source = self._model.source()
        try:
            self._saver.restore(session, source.path)
            self._load_rows(session, source)
        except tf.errors.OpError as error:
            if not _is_of_file(error, source.path):
                raise  # of a server that was lost, or is full
            raise _unreadable(source.path, error) from error
        return self._described(session, source)

    def _load_rows(self, session: Any, source: Source) -> None:
        with return_large_blocks():
            for kind in self._rows:
                for operation, feed in kind.loads(source.reader, source.tables):
                    session.run(operation, {**feed, self._path: source.path})
                    trim()

    def _described(self, session: Any, source: Source) -> str:
        choice, rows = self._model.choice, sum(kind.size(session) for kind in self._rows)
        of_tables = f" and {quantity(rows, 'row')} of {quantity(len(choice.tables), 'table')}" if choice.tables else ""
        others = len({each.name for each in self._model.saved}) + len(self._model.widths) - sum(map(len, choice))
        own = "1 other of the model begins with its first value"
        own = own if others == 1 else f"{others} others of the model begin with their first values"
        rest = f"; {own}" if others else ""
        return f"warm start: {quantity(len(choice.variables), 'variable')}{of_tables} from {source.path}{rest}"


def _is_of_file(error: Exception, path: str) -> bool:
    is_missing = isinstance(error, tf.errors.NotFoundError) and path in str(error)
    return is_missing or isinstance(error, _DAMAGED)


def _kind(dtype: Any, shape: Sequence[int]) -> str:
    return f"{dtype.name} of shape {list(shape)}"


def _other(path: str, there: str, expected: str, found: str) -> CheckpointError:
    return CheckpointError(
        f"train.warm_start: {there!r} in the checkpoint {path}: expected {expected}, found {found};"
        " leave it out with only, or change the model"
    )


def _unreadable(path: str, error: Exception) -> CheckpointError:
    return CheckpointError(
        f"train.warm_start.checkpoint: expected a checkpoint that can be read at {path}, found one that cannot"
        f" ({line_of(error)}); name another"
    )
