"""Safe access to small files in folders where other programs write, too: with limits, and as a whole.

The expected name may belong to a FIFO, which blocks the program that opens it. The name may belong to an endless
device, or to a link to a FIFO or a device. This module opens only regular files, and never waits. It reads JSON of
another program as a dataclass with the right types and sizes, or not at all. It can also replace a file on a full disk.
"""

import contextlib
import errno
import json
import math
import os
import shutil
import stat
import tempfile
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Dict, Iterator, List, Mapping, Tuple, Type, TypeVar, Union, get_type_hints

_SAFE_FLAGS = os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
_KINDS_OF_FILE = {
    stat.S_IFDIR: "a folder", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFLNK: "a link",
    stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
}  # fmt: skip


class NotRegular(OSError):
    """The path is not that of a regular file."""


def open_to_read(path: Path) -> BinaryIO:
    """Open a regular file, unbuffered.

    Raises:
      FileNotFoundError: the file does not exist.
      OSError: the file cannot be read, or is ``NotRegular``.
    """
    return _opened(path, os.O_RDONLY, "rb")


def open_to_append(path: Path) -> BinaryIO:
    """Open a regular file, unbuffered, to write at its end; create a missing file with mode 0600. Raises OSError."""
    return _opened(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, "ab")


def _opened(path: Path, flags: int, mode: str) -> BinaryIO:
    try:
        handle = os.open(str(path), flags | _SAFE_FLAGS, 0o600)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise _refused(path, os.lstat(str(path)).st_mode) from None
        raise
    found = os.fstat(handle).st_mode
    if not stat.S_ISREG(found):
        os.close(handle)
        raise _refused(path, found)
    os.set_blocking(handle, True)  # a child that inherits the handle expects a blocking handle
    return os.fdopen(handle, mode, buffering=0)  # type: ignore[return-value]


def _refused(path: Path, mode: int) -> NotRegular:
    found = _KINDS_OF_FILE.get(stat.S_IFMT(mode), "something else")
    return NotRegular(errno.EINVAL, f"expected a regular file, found {found}", str(path))


def read_at_most(path: Path, limit: int) -> bytes:
    """Return the content of a regular file.

    Raises:
      FileNotFoundError: the file does not exist.
      OSError: the file cannot be read, or is ``NotRegular``.
      ValueError: the file has more than ``limit`` bytes.
    """
    with open_to_read(path) as file:
        data: List[bytes] = []
        size = 0
        while size <= limit:
            piece = file.read(limit + 1 - size)
            if not piece:
                return b"".join(data)
            data.append(piece)
            size += len(piece)
    raise ValueError(f"{path}: expected at most {limit} bytes, found more")


def replace_file(path: Path, text: str) -> None:
    """Replace the content of ``path``, as a whole or not at all.

    If the disk has no room for a second file, the function writes in place. This succeeds if the file does not grow
    beyond its blocks. A program that reads at that moment may get a partly written text.

    Raises:
      OSError: the file can be neither replaced nor written in place.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_text(text)
        os.replace(str(partial), str(path))
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink()
        if not path.exists():
            raise
        with open(str(path), "r+") as file:
            file.write(text)
            file.truncate()


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder to fill, then rename it to ``path``, which must not exist; after an error, remove it.

    Raises:
      OSError: the folder cannot be created, or ``path`` exists.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    own = tempfile.mkdtemp(prefix=f".{path.name}.", dir=str(path.parent))
    try:
        made = Path(own) / path.name
        made.mkdir()
        yield made
        made.rename(path)
    finally:
        shutil.rmtree(own, ignore_errors=True)


def reserve_file(path: Path, size: int) -> None:
    """Reserve ``size`` bytes at ``path``, so that ``replace_file`` works later on a full disk. Raises OSError."""
    if not path.exists():
        path.write_text(" " * size)


ANY_NUMBER = {"any_number": True}  # metadata of a field: NaN and the infinities are allowed, as for a loss
_BOUND = 2**63  # of every other number
_MOST_KEYS = 10_000  # of a dictionary
_TYPE_NAMES: Dict[Any, str] = {
    type(None): "null", float: "a number", int: "an integer", str: "a text", bool: "true or false",
}  # fmt: skip
T = TypeVar("T")


def read_record(path: Path, kind: Type[T], limit: int) -> T:
    """Return the content of a file as ``kind``, a dataclass of plain types.

    Raises:
      FileNotFoundError: the file does not exist.
      OSError: the file cannot be read, or is not a regular file.
      ValueError: the file contains no such record, or has more than ``limit`` bytes.
    """
    data = read_at_most(path, limit)
    try:
        values: Any = json.loads(data.decode())
    except (RecursionError, MemoryError):
        raise ValueError("expected JSON of a few levels, found more") from None
    if not isinstance(values, dict):
        raise ValueError(f"expected a JSON object, found {_shown(values)}")
    return make_record(values, kind)


def make_record(values: Mapping[str, Any], kind: Type[T]) -> T:
    """Return ``values`` as the dataclass ``kind``. Raises ValueError if one is missing, unknown, or of a wrong type."""
    wanted = _fields(kind)  # type: ignore[arg-type]
    for name, value in values.items():
        if name not in wanted:
            raise ValueError(f"expected {', '.join(wanted)}, found {_shown(name)}")
        hint, any_number = wanted[name]
        if not _fits(value, hint, any_number):
            raise ValueError(f"{name}: expected {_type_in_words(hint)}, found {_shown(value)}")
    try:
        return kind(**values)
    except TypeError as error:  # a field without a default is missing
        raise ValueError(str(error)) from None


@lru_cache(maxsize=None)  # the kinds are few; agents read many records of each
def _fields(kind: Type[Any]) -> Dict[str, Tuple[Any, bool]]:
    """Return the type of each field, and whether it may be any number."""
    hints = get_type_hints(kind)
    return {each.name: (hints[each.name], bool(each.metadata.get("any_number"))) for each in fields(kind)}


def _fits(value: Any, hint: Any, any_number: bool) -> bool:
    origin = getattr(hint, "__origin__", None)
    if origin is Union:
        return any(_fits(value, each, any_number) for each in hint.__args__)
    if origin is dict:
        return (
            isinstance(value, dict)
            and len(value) <= _MOST_KEYS
            and all(name.isprintable() for name in value)
            and all(_fits(each, hint.__args__[1], any_number) for each in value.values())
        )
    if origin is list:
        return isinstance(value, list) and all(_fits(each, hint.__args__[0], any_number) for each in value)
    if hint is float:
        return type(value) in (int, float) and _is_sane(value, any_number)
    return type(value) is hint and (hint is not int or _is_sane(value, False))


def _is_sane(value: Union[int, float], any_number: bool) -> bool:
    if isinstance(value, float) and any_number:
        return True
    return -_BOUND < value < _BOUND and not math.isnan(value)


def _type_in_words(hint: Any) -> str:
    if getattr(hint, "__origin__", None) is Union:
        return " or ".join(_type_in_words(each) for each in hint.__args__)
    if getattr(hint, "__origin__", None) is list:
        return "a list of texts"
    return _TYPE_NAMES.get(hint, "an object of numbers")


def _shown(value: Any) -> str:
    """Return a value, however large or deep, as a text of a few characters."""
    if isinstance(value, (dict, list)):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    if isinstance(value, int) and not -_BOUND < value < _BOUND:
        return "a number of more than 64 bits"
    return ascii(value)[:60]
