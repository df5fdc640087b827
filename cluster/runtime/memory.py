"""The memory that this process may still take: what its host has left, and the limit of its control group."""

import contextlib
import re
from pathlib import Path
from typing import List

_HOST, _GROUPS, _OWN_GROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def left() -> int:
    """Return how many bytes are left; files in the page cache count as such."""
    return max(0, min([1024 * _number(_HOST.read_text(), "MemAvailable:"), *_left_in_groups()]))


def _left_in_groups() -> List[int]:
    """Return the same for this process's group and all above it that have a limit, of version 2."""
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
        return [limit - _number(stat, "anon") - _number(stat, "shmem")]
    return []


def _number(text: str, name: str) -> int:
    found = re.search(rf"^{name}\s+(\d+)", text, re.MULTILINE)
    return int(found.group(1)) if found else 0
