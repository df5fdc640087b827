"""A process that outlives its parent.

The process is forked, because a new interpreter would load the modules again: this takes almost 0.1 seconds on every
host of a run.
"""

import os
import sys
import traceback
from pathlib import Path
from typing import Callable, Optional

from launch.agent.linux.processes import show_as

STUMBLED = 1  # the exit code of a process whose function has raised


def fork_away(run: Callable[[], Optional[int]], log: Path, kept: int, title: str) -> int:
    """Fork a process that calls ``run`` in a new session; return the pid of the process.

    The process inherits no open file except the file descriptor ``kept``. Its input is empty, its output is appended to
    ``log``, and ``ps`` shows it as ``title``. The kernel does not reuse the pid until the caller ends, or waits for the
    process. ``run`` returns the exit code; None stands for 0.
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
