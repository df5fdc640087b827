"""Open only regular files, in a folder where other programs write too.

The expected name may belong to a FIFO, which blocks the program that opens it, to a device without end, or to a
link to either. This module opens none of these, and waits for none.
"""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, List

_FLAGS = os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
_KINDS = {
    stat.S_IFDIR: "a folder", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFLNK: "a link",
    stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
}  # fmt: skip


class NotRegular(OSError):
    """The name belongs to something else than a regular file."""


def open_to_read(path: Path) -> BinaryIO:
    """Open a regular file, unbuffered.

    Raises:
      FileNotFoundError: there is none.
      OSError: it cannot be read, or is ``NotRegular``.
    """
    return _opened(path, os.O_RDONLY, "rb")


def open_to_append(path: Path) -> BinaryIO:
    """Open a regular file, or make one for this user alone, to write at its end, unbuffered. Raises OSError."""
    return _opened(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, "ab")


def _opened(path: Path, flags: int, mode: str) -> BinaryIO:
    try:
        handle = os.open(str(path), flags | _FLAGS, 0o600)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise _refused(path, os.lstat(str(path)).st_mode) from None
        raise
    found = os.fstat(handle).st_mode
    if not stat.S_ISREG(found):
        os.close(handle)
        raise _refused(path, found)
    os.set_blocking(handle, True)  # a child that inherits it expects that
    return os.fdopen(handle, mode, buffering=0)  # type: ignore[return-value]


def _refused(path: Path, mode: int) -> NotRegular:
    found = _KINDS.get(stat.S_IFMT(mode), "something else")
    return NotRegular(errno.EINVAL, f"expected a regular file, found {found}", str(path))


def read_at_most(path: Path, limit: int) -> bytes:
    """Return the content of a regular file.

    Raises:
      FileNotFoundError: there is none.
      OSError: it cannot be read, or is ``NotRegular``.
      ValueError: it has more than ``limit`` bytes.
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
