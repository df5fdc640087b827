"""Return freed memory to the system, where the C library would keep it.

glibc keeps freed blocks in each thread that received a tensor: hundreds of megabytes, after a checkpoint.
"""

import ctypes
import threading
from contextlib import contextmanager, suppress
from typing import Iterator

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of malloc.h
TRIM_S = 60.0  # a trim of a large heap takes some milliseconds, and what steps need comes back in as many
_LIBC = ctypes.CDLL(None)


@contextmanager
def return_large_blocks() -> Iterator[None]:
    """Inside, blocks of 1 MiB and more go back to the system when they are freed.

    Afterwards the C library keeps them again, as it does by itself once it has seen large blocks.
    """
    try:
        _set_option(_M_MMAP_THRESHOLD, 1 << 20)
        yield
    finally:
        _set_option(_M_MMAP_THRESHOLD, 32 << 20)
        _set_option(_M_TRIM_THRESHOLD, 64 << 20)


def trim() -> None:
    """Return the memory that freed small blocks took."""
    with suppress(AttributeError):  # another C library than GNU's
        _LIBC.malloc_trim(0)


def trim_every(interval_s: float) -> None:
    """Trim again and again, in a thread that ends with the process."""
    threading.Thread(target=_trim_for_ever, args=(interval_s,), name="trim", daemon=True).start()


def _trim_for_ever(interval_s: float) -> None:
    never = threading.Event()
    while not never.wait(interval_s):
        trim()


def _set_option(option: int, value: int) -> None:
    with suppress(AttributeError):
        _LIBC.mallopt(option, value)
