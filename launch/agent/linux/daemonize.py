"""A process that outlives its parent.

The process is forked, not started as a new interpreter. On every host of a run, a new interpreter would need most of a
tenth of a second to load its parent's modules.
"""

import os
import sys
import traceback
from pathlib import Path
from typing import Callable, Optional

from launch.agent.linux.processes import show_as

STUMBLED = 1  # the exit code of a process whose function has raised


def fork_away(run: Callable[[], Optional[int]], log: Path, kept: int, title: str) -> int:
    """Fork a process that calls ``run`` in its own session; return its pid.

    The process inherits no open file but ``kept``: its input is empty, and its output goes to ``log``. The program ps
    shows the process as ``title``. Until the caller ends or waits for the process, the kernel does not reuse the pid.
    ``run`` returns the exit code, or None for 0.
    """
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code: Optional[int] = STUMBLED
    try:
        os.setsid()
        _leave_files(log, kept)
        show_as(title)
        code = run()
    except BaseException:  # past this point the caller's own code would continue
        os.write(2, traceback.format_exc().encode())
    finally:
        sys.stdout.flush()
        os._exit(code or 0)


def _leave_files(log: Path, kept: int) -> None:
    with open(os.devnull, "rb") as nothing, open(str(log), "ab") as written:
        os.dup2(nothing.fileno(), 0)
        os.dup2(written.fileno(), 1)
        os.dup2(written.fileno(), 2)
    for number in map(int, os.listdir("/proc/self/fd")):
        if number > 2 and number != kept:
            _close(number)


def _close(number: int) -> None:
    try:
        os.close(number)
    except OSError:  # the handle of the listing itself
        return
