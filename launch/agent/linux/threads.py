"""The threads of a process, and the function of the kernel that each waits in, as far as this user may know."""

from pathlib import Path
from typing import List

from launch.agent.linux.procfs import names_in, text_of

MOST = 256  # of one process


def threads(pid: int) -> List[Path]:
    """``/proc/PID/task/THREAD`` of each, ``MOST`` at most; none of a process that is gone."""
    folder = Path(f"/proc/{pid}/task")
    return [folder / name for name in names_in(folder)[:MOST]]


def waits_in(place: Path) -> str:
    """Return the kernel function that a thread, or a process, waits in.

    ``place`` is the folder of the thread, or ``/proc/PID``. The result is "" where the kernel reports no wait.
    """
    return text_of(place / "wchan").strip("0")
