"""The memory of some processes together: what they have written, in memory or swapped out.

Pages of files count for no process: the kernel takes them back when it needs room. A page that processes share counts
once where this kernel and this user can find that out, which costs time; ``at_most`` counts it for each.
"""

import re
from pathlib import Path
from typing import Iterable, Mapping, Tuple

from launch.agent.linux.processes import status
from launch.agent.linux.procfs import text_of

_OWN = ("RssAnon", "RssShmem", "VmSwap")
_SHARED = ("Pss_Anon", "Pss_Shmem", "SwapPss")
KIB = 1 << 10


def at_most(pids: Iterable[int]) -> int:
    """Return the bytes of all processes; pages that they share count more than once."""
    return sum(_sum(status(pid), _OWN) for pid in pids)


def exactly(pids: Iterable[int]) -> int:
    """Return the bytes of all processes; where a process does not show what it shares, as ``at_most``."""
    return sum(_of_process(pid) for pid in pids)


def _of_process(pid: int) -> int:
    rows = re.findall(r"^(\w+): +(\d+ kB)$", text_of(Path(f"/proc/{pid}/smaps_rollup")), re.MULTILINE)
    fields = dict(rows)
    return _sum(fields, _SHARED) if _SHARED[0] in fields else at_most([pid])


def _sum(fields: Mapping[str, str], names: Tuple[str, ...]) -> int:
    return sum(KIB * int(fields.get(name, "0 kB").split()[0]) for name in names)
