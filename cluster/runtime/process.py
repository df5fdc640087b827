"""This process on its host: the memory that it returns, and output on a full disk.

glibc keeps freed blocks in each thread that received a tensor: hundreds of megabytes, after a checkpoint. A full disk
under the log must not end the training.
"""

import ctypes
import errno
import io
import sys
import threading
from contextlib import contextmanager, suppress
from typing import Any, Iterator

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of malloc.h
TRIM_S = 60.0  # a trim of a large heap takes some milliseconds, and steps take the memory back in as many
_LIBC = ctypes.CDLL(None)


@contextmanager
def return_large_blocks() -> Iterator[None]:
    """Inside this context, return blocks of 1 MiB and more to the system as soon as they are freed.

    Afterwards the C library keeps such blocks again, as it does by default once it has seen large blocks.
    """
    try:
        _set_malloc_option(_M_MMAP_THRESHOLD, 1 << 20)
        yield
    finally:
        _set_malloc_option(_M_MMAP_THRESHOLD, 32 << 20)
        _set_malloc_option(_M_TRIM_THRESHOLD, 64 << 20)


def trim_memory() -> None:
    """Return the memory of freed small blocks to the system."""
    with suppress(AttributeError):  # a C library other than GNU's
        _LIBC.malloc_trim(0)


def trim_memory_every(interval_s: float) -> None:
    """Trim the memory at this interval, in a thread that ends with the process."""
    threading.Thread(target=_trim_memory_for_ever, args=(interval_s,), name="trim", daemon=True).start()


def _trim_memory_for_ever(interval_s: float) -> None:
    never = threading.Event()
    while not never.wait(interval_s):
        trim_memory()


def _set_malloc_option(option: int, value: int) -> None:
    with suppress(AttributeError):
        _LIBC.mallopt(option, value)


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class _Log(io.FileIO):
    """A file that discards output that does not fit on the disk, instead of raising OSError."""

    def write(self, text: Any) -> int:
        try:
            return super().write(text) or 0
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            return len(text)


def outlive_full_disk() -> None:
    """Discard printed text while the disk under the log is full, instead of raising OSError."""
    sys.stdout, sys.stderr = _lenient(sys.stdout, 1), _lenient(sys.stderr, 2)


def _lenient(stream: Any, descriptor: int) -> io.TextIOWrapper:
    stream.flush()
    log = _Log(descriptor, "w", closefd=False)
    return io.TextIOWrapper(log, stream.encoding, stream.errors, line_buffering=True, write_through=True)
