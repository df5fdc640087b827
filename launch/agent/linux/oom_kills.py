"""Detect whether the kernel has just killed a process because memory ran out.

A SIGKILL alone does not show who sent it. The kernel counts the processes that it kills when memory runs out. One count
is for the control group of this process (``memory.events`` of version 2, ``memory.oom_control`` of version 1). Another
is for the whole machine (``/proc/vmstat``). A program needs no privilege to read the counts.

A count does not name the process. A task of ours that is killed within ``RECENT_S`` of the count, by nobody here, is
that process. Where this user can read the kernel's messages, the messages name the process.
"""

import re
from pathlib import Path
from typing import List, Optional

from launch.agent.linux.kernel_log import raw
from launch.agent.linux.procfs import text_of

RECENT_S = 5.0
_COUNT = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


class MemoryKills:
    """Watch the kernel's counts; ``took`` reports each kill once."""

    def __init__(self, root: Path = Path("/"), messages: Optional[Path] = None):
        self._counts = counters(root)
        self._messages = messages or root / "dev/kmsg"
        self._seen = self._read()
        self._recent: List[float] = []  # when each was noticed

    def look(self, now: float) -> None:
        """Notices what has been killed since the last look."""
        count = self._read()
        self._recent = [at for at in self._recent if now - at <= RECENT_S] + [now] * (count - self._seen)
        self._seen = count

    def took(self, pid: int, now: float) -> bool:
        """Return whether the kernel killed a process, just found killed, because memory ran out."""
        self.look(now)
        if self._recent:
            self._recent.pop(0)
            return True
        return not self._counts and names_process(self._messages, pid)

    def explained(self, count: int, now: float) -> None:
        """Drop kills whose process is known: the kernel counts those of a task's own group for the machine, too."""
        self.look(now)
        del self._recent[:count]

    def _read(self) -> int:
        return max((_count(path) for path in self._counts), default=0)


def counters(root: Path) -> List[Path]:
    """The files below ``root`` that count, as far as they are there."""
    groups = [line.split(":", 2) for line in text_of(root / "proc/self/cgroup").splitlines()]
    found = [root / "proc/vmstat"]
    for _, controllers, path in groups:
        if not controllers:
            found += [root / "sys/fs/cgroup" / path.lstrip("/") / "memory.events"]
        elif "memory" in controllers.split(","):
            found += [root / "sys/fs/cgroup/memory" / path.lstrip("/") / "memory.oom_control"]
    return [path for path in found if _COUNT.search(text_of(path))]


def names_process(messages: Path, pid: int) -> bool:
    """Return whether the kernel's messages report this process as killed; False where they are unreadable."""
    said = f"Killed process {pid} ".encode()
    try:
        return any(said in message for message in raw(messages))
    except OSError:
        return False


def _count(path: Path) -> int:
    found = _COUNT.search(text_of(path))
    return int(found.group(1)) if found else 0
