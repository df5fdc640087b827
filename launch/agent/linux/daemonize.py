"""A process that outlives the one that started it.

It is forked, not started anew: a fresh interpreter would spend most of a tenth of a second
on loading what this one has loaded already, on every host of a run.
"""

import os
import sys
import traceback
from pathlib import Path
from typing import Callable

from launch.agent.linux.processes import show_as


def fork_away(run: Callable[[], None], log: Path, kept: int, title: str) -> int:
    """Has ``run`` run in a session of its own, and returns that process's pid.

    It has nothing of ours but the file ``kept``: it reads nothing, and writes into ``log``.
    ``title`` is what ps shows of it. Until we end or wait for it, its pid stays its own.
    """
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        _leave_files(log, kept)
        show_as(title)
        run()
    except BaseException:  # past this point the caller's own code would go on
        os.write(2, traceback.format_exc().encode())
    finally:
        sys.stdout.flush()
        os._exit(0)


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
    except OSError:  # the listing's own
        return
