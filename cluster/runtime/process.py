"""This process on its host: the memory that it may take, the memory that it returns, and output on a full disk.

The host and the control group limit the memory. glibc keeps freed blocks in each thread that received a tensor:
hundreds of megabytes, after a checkpoint. A full disk under the log must not end the training.
"""

import contextlib
import ctypes
import errno
import io
import re
import sys
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Iterator, List

_HOST, _GROUPS, _OWN_GROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def memory_left() -> int:
    """Return the bytes of memory that this process may still take; files in the page cache count as free."""
    return max(0, min([1024 * _number_in(_HOST.read_text(), "MemAvailable:"), *_left_in_groups()]))


def _left_in_groups() -> List[int]:
    """Return the bytes left in this process's control group of version 2, and in each group above it with a limit."""
    found: List[int] = []
    with contextlib.suppress(OSError, StopIteration):
        path = next(line[len("0::/") :] for line in _OWN_GROUP.read_text().splitlines() if line.startswith("0::/"))
        group = _GROUPS / path
        for each in (group, *group.parents):
            found += _left_in(each)
    return found


def _left_in(group: Path) -> List[int]:
    with contextlib.suppress(OSError, ValueError):  # ValueError: no limit
        limit, stat = int((group / "memory.max").read_text()), (group / "memory.stat").read_text()
        return [limit - _number_in(stat, "anon") - _number_in(stat, "shmem")]
    return []


def _number_in(text: str, name: str) -> int:
    found = re.search(rf"^{name}\s+(\d+)", text, re.MULTILINE)
    return int(found.group(1)) if found else 0


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
