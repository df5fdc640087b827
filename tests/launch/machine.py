"""This machine as tests see it: what lives, and what was left, under a folder."""

import os
from pathlib import Path
from typing import List

from launch.agent.processes import Process, environment, table


def living_under(folder: Path) -> List[Process]:
    """Processes that work in ``folder``, or were started as a task whose files lie there."""
    return [p for p in table() if p.state != "Z" and p.pid != os.getpid() and _belongs(p.pid, str(folder))]


def _belongs(pid: int, folder: str) -> bool:
    try:
        home = os.readlink(f"/proc/{pid}/cwd")
    except OSError:  # gone since
        return False
    return home.startswith(folder) or environment(pid).get("LAUNCH_TASK_DIR", "").startswith(folder)


def left_in(folder: Path) -> List[str]:
    """Locks and sockets under ``folder``."""
    return sorted(str(path) for suffix in ("lock", "sock") for path in folder.rglob(f"*.{suffix}"))
