"""This machine as tests see it: what lives, and what was left, under a folder."""

import os
import re
from pathlib import Path
from typing import List, Optional, Set

from launch.agent.linux.processes import Process, environment, inspect, table


def lives(pid: int) -> bool:
    """Whether a process of this number lives; one that nobody has reaped does not."""
    process = inspect(pid)
    return process is not None and process.state != "Z"


def pids() -> Set[int]:
    """Return the numbers of all processes."""
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}


def living_under(folder: Path, among: Optional[Set[int]] = None) -> List[Process]:
    """Return the processes that work in ``folder``, or were started as a task whose files lie there.

    Only those ``among`` these numbers, where they are given.
    """
    found = table() if among is None else filter(None, map(inspect, sorted(among)))
    return [p for p in found if p.state != "Z" and p.pid != os.getpid() and _belongs(p.pid, str(folder))]


def _belongs(pid: int, folder: str) -> bool:
    try:
        home = os.readlink(f"/proc/{pid}/cwd")
    except OSError:  # gone since
        return False
    return home.startswith(folder) or environment(pid).get("LAUNCH_TASK_DIR", "").startswith(folder)


def left_in(folder: Path) -> List[str]:
    """Locks and sockets under ``folder``, of which others may remove parts meanwhile."""
    return sorted(
        os.path.join(place, name)
        for place, folders, files in os.walk(str(folder))
        for name in (*folders, *files)
        if name.endswith((".lock", ".sock"))
    )


def is_stopped(pid: int) -> bool:
    """Whether a signal has stopped this process, and it can be continued."""
    process = inspect(pid)
    return process is not None and process.state == "T"


def is_of_a_lease(text: str) -> bool:
    """Whether a cause, or a line that ends with it, says that a launcher's lease ended, after whatever time."""
    return bool(re.search(r"no message from the launcher for \d+ s, so its lease on the run ended$", text))
