"""The limits of this host's tasks, attempt after attempt.

Where the kernel limits memory, each attempt has a group of its own. Elsewhere the agent looks at the memory of each
task every ``LOOK_S``, and stops a task that has more than its limit. It counts the processes that it saw at its last
look at the process table, every ``process_records.NOTE_S``; so memory that a task takes faster is not bounded.

Memory of processes is what they have written, in memory or swapped out. Pages of files count for no process: the kernel
takes them back when it needs room. A page that processes share counts once where this kernel and this user can find
that out, which costs time; ``memory_at_most`` counts it for each.
"""

import os
import re
from pathlib import Path
from typing import Iterable, List, Mapping, Optional, Tuple

from cluster.protocol.settings import GIB
from launch.agent.endings.exits import Excess
from launch.agent.limits.control_groups import Group
from launch.agent.limits.enforcement import Enforcement, Terms
from launch.agent.linux.processes import status
from launch.agent.linux.procfs import text_of
from launch.agent.state import groups
from launch.agent.state.log import say
from launch.agent.state.run_folder import RunFolder
from launch.agent.tasks.attempt import Attempt

_OWN = ("RssAnon", "RssShmem", "VmSwap")
_SHARED = ("Pss_Anon", "Pss_Shmem", "SwapPss")
KIB = 1 << 10


def memory_at_most(pids: Iterable[int]) -> int:
    """Return the bytes of all processes; pages that they share count more than once."""
    return sum(_sum_of(status(pid), _OWN) for pid in pids)


def memory_exactly(pids: Iterable[int]) -> int:
    """Return the bytes of all processes; where a process does not show what it shares, as ``at_most``."""
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
        self._empty: List[Group] = []  # as good as: the last process may be about to leave
        self._look_at = 0.0

    def of(self, task: str, attempt: int) -> Enforcement:
        """Return the enforcement of an attempt's limits, with a new group. Raises OSError."""
        return self._terms.enforcement(task, self._group(task, attempt))

    def _group(self, task: str, attempt: int) -> Optional[Group]:
        limit, place = self._limit(task), self._terms.place
        if limit is None or place is None:
            return None
        self._made += 1
        which = f"{task}.{attempt}.{os.getpid()}.{self._made}"  # an agent before may have left the same attempt's
        return place.make(groups.name(self._folder, which), limit)

    def _limit(self, task: str) -> Optional[int]:
        limits = self._terms.limits.get(task)
        return None if limits is None else limits.memory_bytes

    def look(self, now: float, running: Iterable[Attempt]) -> None:
        """Stop the attempts without a group that have more memory than their limit, where a look is due."""
        if now < self._look_at:
            return
        self._look_at = now + LOOK_S
        self._empty = [group for group in self._empty if not group.remove(within_s=0.0)]
        for attempt in running:
            limit = self._limit(attempt.task)
            if limit is not None and attempt.group is None and attempt.killed_at is None:
                used = _above(limit, [attempt.process.pid, *attempt.kin.pids])
                if used:
                    say(f"killing {attempt.task}: expected at most {limit} bytes of memory, found {used}")
                    attempt.excess_bytes = used
                    attempt.end_by(now, term=False)

    def ended(self, attempt: Attempt) -> Optional[Excess]:
        """Remove an attempt's group; return the limit that the attempt has reached, or None."""
        group, limit = attempt.group, self._limit(attempt.task)
        kills = 0 if group is None else group.kills()
        if group is not None and not group.remove(within_s=0.0):
            self._empty.append(group)
        if limit is None or not (kills or attempt.excess_bytes):
            return None
        by = "the kernel" if kills else "the agent"
        return Excess(f"memory limit of {limit / GIB:g} GiB reached", f"killed by {by}; {ADVICE}", kills)


def _above(limit: int, pids: List[int]) -> int:
    """Return the memory of some processes where it is above the limit, else 0."""
    used = memory_at_most(pids)
    if used > limit and len(pids) > 1:  # which may share pages
        used = memory_exactly(pids)
    return used if used > limit else 0
