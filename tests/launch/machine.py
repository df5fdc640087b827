"""This machine as tests see it: what lives under a folder, and waiting for what must come."""

import os
import time
from pathlib import Path
from typing import Any, Callable, List

from launch.agent.processes import Process, environment, table

PATIENCE_S = 60.0


def eventually(what: str, condition: Callable[[], Any], patience_s: float = PATIENCE_S) -> Any:
    """The first true value of ``condition``; fails the test when there is none in time."""
    until = time.monotonic() + patience_s
    while time.monotonic() < until:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"not within {patience_s:.0f} s: {what}")


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
