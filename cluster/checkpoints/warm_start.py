"""A warm start: variables and tables of a new run take first values from another model's checkpoint.

The settings choose variables and tables of the model, and their names in that checkpoint. Only the chief reads the
checkpoint, piece by piece, and sends the values to the servers. The optimizer's state and the global step are not
taken.
"""

import difflib
import os
import socket
from abc import ABC, abstractmethod
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Collection, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence

from cluster.checkpoints.finished_files import open_reader
from cluster.checkpoints.pieces_of_variables import Fed, Step
from cluster.checkpoints.streamed_saver import StreamedSaver
from cluster.errors import CheckpointError, TrainingError
from cluster.protocol.checkpoint_files import list_checkpoints
from cluster.protocol.quantity import quantity
from cluster.runtime.process import return_large_blocks, trim_memory
from cluster.runtime.tf_compat import tf
from cluster.runtime.tf_errors import line_of
from cluster.task import WarmStart
from cluster.variables.layout import Saved
from cluster.variables.masters import saved_variables

_NEAREST = 3  # names in a message
_INDEX = ".index"


class Choice(NamedTuple):
    """The chosen variables and tables of a model, each with its name in the checkpoint."""

    variables: Dict[str, str]
    tables: Dict[str, str]


def choose(settings: WarmStart, variables: Collection[str], tables: Collection[str]) -> Choice:
    """Return the variables and tables that ``train.warm_start`` chooses among the names ``variables`` and ``tables``.

    Raises:
      TrainingError: a pattern of ``only`` fits no name, or no chosen name begins with a key of ``rename``.
    """
    model = [*variables, *tables]
    for pattern in settings.only or ():
        if not any(fnmatchcase(name, pattern) for name in model):
            raise TrainingError(
                "train.warm_start.only: expected names or patterns of this model's variables and tables,"
                f" found {pattern!r}, which matches none of them; {_nearest(pattern, model, 'the model has')}"
            )
    chosen = [name for name in model if settings.only is None or any(fnmatchcase(name, each) for each in settings.only)]
    _refuse_unused(settings.rename, chosen)
    of = {name: renamed(name, settings.rename) for name in chosen}
    return Choice({name: of[name] for name in of if name in variables}, {n: of[n] for n in of if n in tables})


def renamed(name: str, rename: Mapping[str, str]) -> str:
    """Return the checkpoint's name for the model's ``name``: ``rename`` replaces the longest matching prefix."""
    fitting = [each for each in rename if name.startswith(each)]
    longest = max(fitting, key=len) if fitting else ""
    return rename.get(longest, longest) + name[len(longest) :]


def _refuse_unused(rename: Mapping[str, str], chosen: Sequence[str]) -> None:
    for prefix in rename:
        if not any(name.startswith(prefix) for name in chosen):
            raise TrainingError(
                "train.warm_start.rename: expected prefixes of the names of this model's chosen variables and tables,"
                f" found {prefix!r}, which is a prefix of none; {_nearest(prefix, chosen, 'chosen are')}"
            )


def lacking(name: str, there: str, known: Sequence[str], path: str) -> CheckpointError:
    """Return the error for a chosen variable or table, ``name``: the checkpoint at ``path`` has no ``there``.

    Args:
      there: the name that the variable or table would have in the checkpoint; ``known``: all names in the checkpoint.
    """
    as_there = "" if name == there else f" (in this model {name!r})"
    return CheckpointError(
        f"train.warm_start: expected {there!r}{as_there} in the checkpoint {path}, found none;"
        f" {_nearest(there, known, 'it has')}; correct train.warm_start.rename, or choose other names in"
        " train.warm_start.only"
    )


def _nearest(name: str, known: Sequence[str], has: str) -> str:
    """Return the nearest of the known names in words, or some of the names if none is near."""
    nearest: List[str] = difflib.get_close_matches(name, sorted(known), _NEAREST, 0.4)
    if nearest:
        return f"the nearest are {', '.join(nearest)}" if len(nearest) > 1 else f"the nearest is {nearest[0]}"
    return f"{has} {', '.join(sorted(known)[:_NEAREST])}{', …' * (len(known) > _NEAREST)}" if known else f"{has} none"


def find_checkpoint(checkpoint: str) -> str:
    """Return the prefix of the checkpoint that ``train.warm_start.checkpoint`` names on this host.

    Args:
      checkpoint: a prefix; or a folder, for the newest checkpoint in it.

    Raises:
      CheckpointError: the checkpoint does not exist.
    """
    path = os.path.expanduser(checkpoint)
    if os.path.exists(path + _INDEX):
        return path
    if not os.path.isdir(path):
        raise _none_at(path, "another file" if os.path.exists(path) else "nothing")
    try:
        return _newest(path)
    except OSError as error:
        found = f"a folder that cannot be read ({error.strerror})"
        raise _none_at(path, found, "let this user read it, or name another checkpoint") from None


def _newest(folder: str) -> str:
    numbered = list_checkpoints(Path(folder))
    if numbered:
        return numbered[0].path
    others = sorted(name for name in os.listdir(folder) if name.endswith(_INDEX))
    if len(others) != 1:
        names = ", ".join(others[:_NEAREST])
        raise _none_at(folder, f"checkpoints without a step: {names}" if others else "a folder without a checkpoint")
    return os.path.join(folder, others[0][: -len(_INDEX)])


def _none_at(path: str, found: str, step: str = "correct the path, or copy the checkpoint there") -> CheckpointError:
    return CheckpointError(
        f"train.warm_start.checkpoint: expected a checkpoint such as …/model-800, or a folder with checkpoints, at"
        f" {path} on {socket.gethostname()}, which runs the chief; found {found}; {step}"
    )


_DAMAGED = (tf.errors.DataLossError, tf.errors.OutOfRangeError, tf.errors.PermissionDeniedError)


class WarmSource(NamedTuple):
    """A checkpoint that has all chosen variables and tables: its prefix, and TensorFlow's reader of it."""

    path: str
    reader: Any


class WarmRows(ABC):
    """Tables of rows that a model has in addition to its variables, and that a warm start can fill.

    ``widths``: the width of a row, by the name of its table.
    """

    widths: Dict[str, int]

    @abstractmethod
    def stored(self, reader: Any) -> Dict[str, int]:
        """Return the widths of the tables in a checkpoint, by name. Raises ``tf.errors.OpError``."""

    @abstractmethod
    def make_loads(self, fed: Fed) -> None:
        """Create the operations of ``loads``, on the current device."""

    @abstractmethod
    def loads(self, reader: Any, chosen: Mapping[str, str]) -> Iterator[Step]:
        """Yield the operations that fill tables, each together with all its feeds except the path.

        ``chosen`` maps the names of these tables in the model to their names in the checkpoint.
        """

    @abstractmethod
    def size(self, session: Any) -> int:
        """Return the number of rows of all tables together."""


class ModelNames:
    """The variables and tables of a model to which a warm start can give values."""

    def __init__(self, settings: WarmStart, variables: Sequence[Any], rows: Optional[WarmRows]):
        self._settings, self.saved, self._rows = settings, saved_variables(variables), rows
        self.widths = rows.widths if rows else {}
        names = dict.fromkeys(each.name for each in self.saved)
        self.choice: Choice = choose(settings, names, self.widths)

    @property
    def chosen(self) -> List[Saved]:
        """Return the chosen variables, under their names in the checkpoint."""
        of = self.choice.variables
        return [replace(each, name=of[each.name]) for each in self.saved if each.name in of]

    def source(self) -> WarmSource:
        """Find the checkpoint, check that it has all chosen variables and tables, and return it.

        Raises:
          CheckpointError: the checkpoint is missing or unreadable, or a chosen value is missing or has another shape or
            type.
        """
        path = find_checkpoint(self._settings.checkpoint)
        try:
            reader = open_reader(path)
            tables = self._rows.stored(reader) if self._rows else {}
        except tf.errors.OpError as error:
            raise _unreadable(path, error) from None
        self._refuse_other_variables(path, reader)
        self._refuse_other_tables(path, tables)
        return WarmSource(path, reader)

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
                raise _other(path, there, f"{expected}, like {each.name!r} in this model", _kind(*found))

    def _refuse_other_tables(self, path: str, stored: Mapping[str, int]) -> None:
        for name, there in self.choice.tables.items():
            if there not in stored:
                raise lacking(name, there, list(stored), path)
            width, found = self.widths[name], stored[there]
            if found != width:
                raise _other(
                    path, there, f"rows of {width} numbers, like the table {name!r} in this model", f"rows of {found}"
                )


class WarmLoader:
    """The operations in the chief's graph that give the chosen variables and tables their values.

    Raises:
      TrainingError: ``train.warm_start`` has a name that is not in the model.
    """

    def __init__(self, settings: WarmStart, variables: Sequence[Any], rows: Optional[WarmRows], host: str):
        self._model, self._rows = ModelNames(settings, variables, rows), rows
        self._saver = StreamedSaver(self._model.chosen, host)
        if rows is not None:
            with tf.device(host):
                self._fed = Fed.make()
                rows.make_loads(self._fed)

    def load(self, session: Any) -> str:
        """Replace the first values of the chosen variables and tables; return one line about the warm start.

        Raises:
          CheckpointError: the checkpoint is missing, cannot be read, or does not fit.
        """
        source = self._model.source()
        try:
            self._saver.restore(session, source.path)
            self._load_rows(session, source)
        except tf.errors.OpError as error:
            if not _is_of_file(error, source.path):
                raise  # the error of a server that was lost, or is full
            raise _unreadable(source.path, error) from error
        return self._described(session, source)

    def _load_rows(self, session: Any, source: WarmSource) -> None:
        if self._rows is None:
            return
        with return_large_blocks():
            for operation, feed in self._rows.loads(source.reader, self._model.choice.tables):
                session.run(operation, {**feed, self._fed.path: source.path})
                trim_memory()

    def _described(self, session: Any, source: WarmSource) -> str:
        choice, rows = self._model.choice, self._rows.size(session) if self._rows else 0
        of_tables = f" and {quantity(rows, 'row')} of {quantity(len(choice.tables), 'table')}" if choice.tables else ""
        others = len({each.name for each in self._model.saved}) + len(self._model.widths) - sum(map(len, choice))
        own = "1 other variable keeps its initial value"
        own = own if others == 1 else f"{others} other variables keep their initial values"
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
        " choose other names in train.warm_start.only, or change the model"
    )


def _unreadable(path: str, error: Exception) -> CheckpointError:
    return CheckpointError(
        f"train.warm_start.checkpoint: expected a checkpoint that can be read at {path}, found one that cannot be"
        f" read ({line_of(error)}); name another checkpoint"
    )
