"""This process's limit of open files, and a wait for a file whose number is too high for ``select``.

A process that talks to many hosts needs several open files for each host, and for each checkpoint in transfer. Its
children start with its original limit, because a program that uses ``select`` fails on files beyond the 1024th.
"""

import math
import resource
import select
from typing import Any, List, Optional, Tuple

ALL = 1 << 20  # effectively no bound
_first: List[Tuple[int, int]] = []  # the limits before they were changed here


def allow_open_files(count: int) -> None:
    """Raise this process's limit of open files to ``count``, or as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        if not _first:
            _first.append((soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def restore_first_limit() -> None:
    """Restore this process's original limit of open files. A child calls this before its program begins."""
    if _first:
        resource.setrlimit(resource.RLIMIT_NOFILE, _first[0])


def share_of_files(share: float, most: int) -> int:
    """Return ``share`` times the number of files that this process may have open, but at most ``most``."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if soft == resource.RLIM_INFINITY else min(most, int(share * soft))


def readable(file: Any, timeout_s: Optional[float]) -> bool:
    """Wait until ``file`` has data or is at its end; return False if ``timeout_s`` seconds pass first.

    With None the function waits without a time limit.
    """
    poller = select.poll()
    poller.register(file, select.POLLIN)
    return bool(poller.poll(None if timeout_s is None else math.ceil(1000 * max(0.0, timeout_s))))
