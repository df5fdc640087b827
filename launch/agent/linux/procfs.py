"""Read ``/proc``: small files and folders, the threads of a process, and the work that it has done.

What is gone, or belongs to another user, is empty.

A task that waits for a processor, or for a slow disk, is not frozen. Seconds on a clock do not distinguish such a task
from one that hangs; the work that a task has done meanwhile does.
"""

import os
from pathlib import Path
from typing import List, NamedTuple, Optional

LONGEST = 1 << 20  # characters
MOST = 256  # threads of one process


def text_of(path: Path) -> str:
    """Return the text of a file, ``LONGEST`` characters at most; "" where it is unreadable."""
    try:
        with open(str(path), errors="replace") as file:
            return file.read(LONGEST)
    except OSError:
        return ""


def names_in(folder: Path) -> List[str]:
    """Return the names in a folder; none where the folder cannot be read."""
    try:
        return os.listdir(str(folder))
    except OSError:
        return []


def threads(pid: int) -> List[Path]:
    """``/proc/PID/task/THREAD`` of each, ``MOST`` at most; none of a process that is gone."""
    folder = Path(f"/proc/{pid}/task")
    return [folder / name for name in names_in(folder)[:MOST]]


def waits_in(place: Path) -> str:
    """Return the kernel function that a thread, or a process, waits in.

    ``place`` is the folder of the thread, or ``/proc/PID``. The result is "" where the kernel reports no wait.
    """
    return text_of(place / "wchan").strip("0")


IDLE = 0.05  # of a processor: what a task uses whose threads only wait
TRICKLE = 64 << 10  # bytes a second: its own signs of life and lines of progress are less
SLOWEST = 0.1  # of the time: a task that does next to nothing must not go on for ever


class Work(NamedTuple):
    """The work of a process and its threads so far; ``bytes`` counts their reads and writes, pipes included."""

    processor_s: float
    bytes: int


def work_of(pid: int) -> Optional[Work]:
    """Return the work of a process from ``/proc``; None where there is no such process."""
    text = text_of(Path(f"/proc/{pid}/stat"))
    if not text:
        return None
    fields = text[text.rindex(")") + 2 :].split()
    ticks = int(fields[11]) + int(fields[12])
    moved = dict(line.split(": ") for line in text_of(Path(f"/proc/{pid}/io")).splitlines())
    return Work(ticks / os.sysconf("SC_CLK_TCK"), int(moved.get("rchar", 0)) + int(moved.get("wchar", 0)))


def pace(earlier: Work, later: Work, seconds: float) -> float:
    """Return the part of its time that a process was served.

    A process that asked for nothing was served all of its time.
    """
    if seconds <= 0:
        return 1.0
    part = (later.processor_s - earlier.processor_s) / seconds
    if part < IDLE and (later.bytes - earlier.bytes) / seconds < TRICKLE:
        return 1.0
    return min(1.0, max(SLOWEST, part))
