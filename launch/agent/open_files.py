"""How many files this process may have open: each host takes some, and so does each checkpoint on its way."""

import resource


def allow_open_files(count: int) -> None:
    """Raises this process's own limit to ``count``, or as far as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
