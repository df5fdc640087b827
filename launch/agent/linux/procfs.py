"""Read ``/proc``: small files and folders, and the threads of a process.

What is gone, or belongs to another user, is empty.
"""

import os
from pathlib import Path
from typing import List

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
