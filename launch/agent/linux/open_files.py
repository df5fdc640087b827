"""The limit of this process's open files: each host takes some, and so does each checkpoint on its way.

The children of this process get the limit that it was started with: a program that uses ``select`` breaks on files
beyond the 1024th.
"""

import resource
from typing import List, Tuple

ALL = 1 << 20  # as good as any number
_first: List[Tuple[int, int]] = []  # the limits before they were changed here


def allow_open_files(count: int) -> None:
    """Raises this process's own limit to ``count``, or as far as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        if not _first:
            _first.append((soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def restore_first_limit() -> None:
    """Restore this process's first limit; a child calls this before its program begins."""
    if _first:
        resource.setrlimit(resource.RLIMIT_NOFILE, _first[0])


def share_of_files(share: float, most: int) -> int:
    """Return this share of the files that this process may have open, ``most`` at most."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if soft == resource.RLIM_INFINITY else min(most, int(share * soft))
