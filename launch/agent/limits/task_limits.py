"""The limits of each attempt, which is one start of a task on this host.

Where the kernel limits memory, each attempt has its own control group. Elsewhere the agent measures each task's memory
every ``LOOK_S``, and stops a task above its limit. It knows the task's processes from its last read of the process
table, every ``process_records.NOTE_S``. So memory that a task takes within these seconds is not limited.

The memory of a process is its written pages, in memory or swapped out. Pages of files do not count, because the kernel
can reclaim them. ``memory_exactly`` counts a shared page once where this kernel and this user can detect the sharing,
which costs time. ``memory_at_most`` counts a shared page for each process.
"""

import os
import re
from pathlib import Path
from typing import Dict, Iterable, List, Mapping, Optional, Tuple

from cluster.protocol.settings import GIB
from launch.agent.endings.exits import Excess
from launch.agent.limits import control_groups
from launch.agent.limits.control_groups import Group
from launch.agent.limits.enforcement import Enforcement, Terms
from launch.agent.linux.processes import status
from launch.agent.linux.procfs import text_of
from launch.agent.state.log import say
from launch.agent.state.run_folder import RunFolder

_OWN = ("RssAnon", "RssShmem", "VmSwap")
_SHARED = ("Pss_Anon", "Pss_Shmem", "SwapPss")
KIB = 1 << 10


def memory_at_most(pids: Iterable[int]) -> int:
    """Return the bytes of memory of the processes ``pids``; a page that several of them share counts for each."""
    return sum(_sum_of(status(pid), _OWN) for pid in pids)


def memory_exactly(pids: Iterable[int]) -> int:
    """Return the bytes of memory of the processes ``pids``; a page that several of them share counts once.

    If this user cannot detect a process's shared pages, they count as in ``memory_at_most``.
    """
    return sum(_memory_of(pid) for pid in pids)


def _memory_of(pid: int) -> int:
    rows = re.findall(r"^(\w+): +(\d+ kB)$", text_of(Path(f"/proc/{pid}/smaps_rollup")), re.MULTILINE)
    fields = dict(rows)
    return _sum_of(fields, _SHARED) if _SHARED[0] in fields else memory_at_most([pid])


def _sum_of(fields: Mapping[str, str], names: Tuple[str, ...]) -> int:
    return sum(KIB * int(fields.get(name, "0 kB").split()[0]) for name in names)


LOOK_S = 1.0
ADVICE = "raise memory_gib under limits, or let the task use less"


class TaskLimits:
    """The limits of the tasks of this host."""

    def __init__(self, folder: RunFolder, terms: Terms):
        self._folder, self._terms = folder, terms
        self._made = 0
        self._groups: Dict[Tuple[str, int], Group] = {}  # the groups of attempts
        self._empty: List[Group] = []  # nearly empty groups: the last process may be leaving
        self._look_at = 0.0

    def of(self, task: str, attempt: int) -> Enforcement:
        """Return an attempt's limits for its process to set; create a control group where the kernel limits memory.

        Raises:
          OSError: the group cannot be created.
        """
        limit, place = self._limit(task), self._terms.place
        if limit is None or place is None:
            return self._terms.enforcement(task, None)
        self._made += 1
        which = f"{task}.{attempt}.{os.getpid()}.{self._made}"  # no earlier agent's group has this name
        group = place.make(control_groups.name(self._folder, which), limit)
        self._groups[task, attempt] = group
        return self._terms.enforcement(task, group)

    def _limit(self, task: str) -> Optional[int]:
        limits = self._terms.limits.get(task)
        return None if limits is None else limits.memory_bytes

    def due(self, now: float) -> bool:
        """Return whether to measure memory now. After True, the result is False for ``LOOK_S`` seconds."""
        if now < self._look_at:
            return False
        self._look_at = now + LOOK_S
        self._empty = [group for group in self._empty if not group.remove(within_s=0.0)]
        return True

    def excess_bytes(self, task: str, attempt: int, pids: List[int]) -> int:
        """Return the bytes of memory of an attempt without a control group, if they exceed its limit; else 0.

        ``pids`` are the processes of the attempt. The caller must end an attempt that exceeds its limit.
        """
        limit = self._limit(task)
        used = 0 if limit is None or (task, attempt) in self._groups else _above(limit, pids)
        if used:
            say(f"killing {task}: expected at most {limit} bytes of memory, found {used}")
        return used

    def ended(self, task: str, attempt: int, excess_bytes: int = 0) -> Optional[Excess]:
        """Remove the control group of an attempt that has ended; return the limit that it has exceeded, or None."""
        group, limit = self._groups.pop((task, attempt), None), self._limit(task)
        kills = 0 if group is None else group.kills()
        if group is not None and not group.remove(within_s=0.0):
            self._empty.append(group)
        if limit is None or not (kills or excess_bytes):
            return None
        by = "the kernel" if kills else "the agent"
        return Excess(f"memory limit of {limit / GIB:g} GiB reached", f"killed by {by}; {ADVICE}", kills)


def _above(limit: int, pids: List[int]) -> int:
    """Return the memory of some processes where the memory is above the limit; else 0."""
    used = memory_at_most(pids)
    if used > limit and len(pids) > 1:  # several processes may share pages
        used = memory_exactly(pids)
    return used if used > limit else 0
