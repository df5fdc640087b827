"""Many open files: the limit of this process, and a wait for a file above the numbers that ``select`` accepts.

A process that talks to many hosts needs some files for each host, and for each checkpoint in transfer.

The children of this process start with its first limit: a program that uses ``select`` fails on files beyond the
1024th.
"""

import math
import resource
import select
from typing import Any, List, Optional, Tuple

ALL = 1 << 20  # effectively no bound
_first: List[Tuple[int, int]] = []  # the limits before they were changed here


def allow_open_files(count: int) -> None:
    """Raise this process's own limit of open files to ``count``, or as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        if not _first:
            _first.append((soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def restore_first_limit() -> None:
    """Restore this process's first limit of open files; a child calls this function before its program begins."""
    if _first:
        resource.setrlimit(resource.RLIMIT_NOFILE, _first[0])


def share_of_files(share: float, most: int) -> int:
    """Return the part ``share`` of the number of files that this process may have open, but at most ``most``."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if soft == resource.RLIM_INFINITY else min(most, int(share * soft))


def readable(file: Any, timeout_s: Optional[float]) -> bool:
    """Wait at most ``timeout_s`` until ``file`` has data to read or is at its end; return whether it does.

    With None the function waits without a time limit.
    """
    poller = select.poll()
    poller.register(file, select.POLLIN)
    return bool(poller.poll(None if timeout_s is None else math.ceil(1000 * max(0.0, timeout_s))))
