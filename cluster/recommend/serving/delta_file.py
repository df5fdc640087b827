"""A delta: all rows and variables of a served model that differ between two versions of it, in one file.

A version is that of a checkpoint, such as ``800-1f3a9c0d`` (``cluster.protocol.checkpoint_files.version_of``). The file
``700-5b1c22e7..800-1f3a9c0d.npz`` changes a model of the first version into one of the second. A file that begins with
``0..`` has the whole model. The file is an archive of numpy without pickled objects; its format keeps a checksum of
each array:

    about                a JSON object: since, version, the names of variables, of each table its size and initializer
    ids/TABLE            int64 [n], ascending: the ids whose rows are new, or have changed
    rows/TABLE           float32 [n, width]
    removed/TABLE        int64 [m], ascending: the ids that have lost their row
    variable/NAME        the value of a variable
"""

import contextlib
import json
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO, Dict, Mapping, NamedTuple, Optional, Tuple, Union

import numpy as np

from cluster.errors import DeltaError
from cluster.protocol.checkpoint_files import NO_VERSION, VERSION, delta_name

WHOLE = "export the whole model with --since 0"
_Path = Union[str, "os.PathLike[str]"]


class TableDelta(NamedTuple):
    """The differences of one table.

    ``ids`` [n] and ``removed`` [m] are int64, ascending. ``rows`` is float32 [n, width]. ``size`` is the number of rows
    that the table has then. ``initializer``: kind, two numbers and seed, from which rows of other ids follow.
    """

    ids: np.ndarray
    rows: np.ndarray
    removed: np.ndarray
    size: int
    initializer: Tuple[str, float, float, int]


class Delta(NamedTuple):
    """The differences between the versions ``since`` and ``version`` of a model: of tables and variables, by name."""

    since: str
    version: str
    tables: Dict[str, TableDelta]
    variables: Dict[str, np.ndarray]

    @property
    def name(self) -> str:
        """Return the name of the delta's file."""
        return delta_name(self.since, self.version)


def write(delta: Delta, folder: _Path) -> Path:
    """Write ``delta`` into a file in ``folder``, completely or not at all; return the path. Raises OSError."""
    about = {
        "since": delta.since, "version": delta.version, "variables": sorted(delta.variables),
        "tables": {name: [each.size, each.initializer] for name, each in delta.tables.items()},
    }  # fmt: skip
    arrays = {"about": np.array(json.dumps(about))}
    for name, each in delta.tables.items():
        arrays.update({f"ids/{name}": each.ids, f"rows/{name}": each.rows, f"removed/{name}": each.removed})
    arrays.update({f"variable/{name}": value for name, value in delta.variables.items()})
    path = Path(os.fspath(folder)) / delta.name
    partial = str(path.parent / f".{path.name}.{os.getpid()}")
    try:
        with open(partial, "wb") as file:
            np.savez(file, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, str(path))
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)
        raise
    return path


def read(path: _Path) -> Delta:
    """Return the delta in the file at ``path``.

    Raises:
      DeltaError: the file is damaged, or is no delta.
      OSError: the file cannot be read.
    """
    with open(os.fspath(path), "rb") as file:
        try:
            return _parsed(file)
        except (LookupError, TypeError, ValueError, EOFError, AttributeError, ArithmeticError, RuntimeError,
                OSError, MemoryError, zlib.error, zipfile.BadZipFile) as error:  # fmt: skip
            raise DeltaError(
                f"{path}: expected a delta of launch export, found: {error}; fetch the file again"
            ) from error


def _parsed(file: BinaryIO) -> Delta:
    """Return the delta in ``file``. Raises many errors where the file is damaged."""
    with zipfile.ZipFile(file) as archive:
        damaged = archive.testzip()  # numpy may read less than a whole array, and then compares no checksum
        if damaged is not None:
            raise ValueError(f"{damaged} is damaged")
    file.seek(0)
    with np.load(file, allow_pickle=False) as loaded:
        arrays = dict(loaded)
    about = json.loads(str(arrays["about"]))
    since, version = about["since"], about["version"]
    tables = {name: _table(name, arrays, *found) for name, found in about["tables"].items()}
    variables = _variables(arrays)
    if not (VERSION.fullmatch(since) and VERSION.fullmatch(version)) or sorted(variables) != about["variables"]:
        raise ValueError("versions or variables that do not fit")
    return Delta(since, version, tables, variables)


def _table(name: str, arrays: Mapping[str, np.ndarray], size: Any, initializer: Any) -> TableDelta:
    """Return the differences of one table. Raises KeyError, TypeError, ValueError."""
    ids, rows, removed = (arrays[f"{column}/{name}"] for column in ("ids", "rows", "removed"))
    is_sane = rows.ndim == 2 and len(rows) == len(ids) and rows.dtype == np.float32 and isinstance(size, int)
    if not is_sane or not all(_ascends(each) for each in (ids, removed)):
        raise ValueError(f"the table {name!r} has arrays that do not fit")
    kind, first, second, seed = initializer
    return TableDelta(ids, rows, removed, size, (str(kind), float(first), float(second), int(seed)))


def _ascends(ids: np.ndarray) -> bool:
    return ids.dtype == np.int64 and ids.ndim == 1 and bool(np.all(ids[1:] > ids[:-1]))


def _variables(arrays: Mapping[str, np.ndarray]) -> Dict[str, np.ndarray]:
    start = "variable/"
    return {name[len(start) :]: value for name, value in arrays.items() if name.startswith(start)}


def next_delta(folder: _Path, version: str) -> Optional[Path]:
    """Return the path of the delta in ``folder`` that follows ``version``; None while no such file exists.

    If several files follow the version, the function returns the newest file: a run may have gone back. Raises OSError.
    """
    splits = (path.stem.partition("..") for path in Path(os.fspath(folder)).glob("*.npz"))
    newer = [end for since, _, end in splits if since == version != end and VERSION.fullmatch(end)]
    paths = [Path(os.fspath(folder)) / delta_name(version, end) for end in newer]
    return max(paths, key=lambda path: path.stat().st_mtime_ns) if paths else None


def refuse_other(delta: Delta, version: str, tables: Mapping[str, int]) -> None:
    """Refuse ``delta`` unless it follows ``version``, and has rows for exactly the tables of the model.

    Args:
      tables: the width of each table of the model; none where the model is still empty.

    Raises:
      DeltaError: the delta is for another version, or for another model.
    """
    if delta.since != version:
        found = f"found one since {delta.since}; export with --since {version}"
        raise DeltaError(f"{delta.name}: expected a delta since {version}, {found}")
    widths = {name: each.rows.shape[1] for name, each in delta.tables.items()}
    if version != NO_VERSION and widths != dict(tables):
        raise DeltaError(f"{delta.name}: expected the tables and widths {dict(tables)}, found {widths}; {WHOLE}")
