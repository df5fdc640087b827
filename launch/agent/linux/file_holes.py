"""Give the blocks of a part of a file back to the disk; the file keeps its length, and reads as zeros there."""

import ctypes
import os

_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # modes of fallocate(2)
_libc = ctypes.CDLL(None, use_errno=True)


def punch(handle: int, begin: int, end: int) -> None:
    """Free a part of an open file. Raises OSError, also where the file system cannot."""
    fallocate = getattr(_libc, "fallocate64", _libc.fallocate)  # whose offsets have 64 bits everywhere
    if fallocate(handle, _KEEP_SIZE | _PUNCH_HOLE, ctypes.c_int64(begin), ctypes.c_int64(end - begin)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
