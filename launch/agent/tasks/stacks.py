"""What a process is doing: the stacks of its threads, as it writes them itself, and what the kernel says of each."""

import os
import signal
import time
from collections import Counter
from pathlib import Path

from cluster.pulse import STACKS, STACKS_BY
from cluster.regular_file import open_to_read
from launch.agent.linux import processes
from launch.agent.linux.threads import threads, waits_in

WRITE_S = 1.5  # how long a process has to write them
LOOK_S = 0.1
LONGEST = 16_000  # characters


class Stacks:
    """Of one process, which writes them from now on, if it does so at all, while we wait. Kill it soon.

    A process that a signal has stopped is let go on, so that it can write.
    """

    def __init__(self, pid: int, folder: Path):
        process = processes.inspect(pid)
        self._written = Written(folder)
        self._of_kernel = "" if process is None else _of_kernel(process)
        if process is not None and catches(pid, STACKS_BY):
            processes.signal_process(pid, process.start, STACKS_BY)
            processes.signal_process(pid, process.start, signal.SIGCONT)

    def are_written(self) -> bool:
        """Whether the process seems to have written all; ask now and then."""
        return self._written.rests()

    def text(self) -> str:
        """What the kernel says, then what the process has written, its end where it is long."""
        return "\n".join(filter(None, [self._of_kernel, self._written.text()]))


class Written:
    """What a task's processes write of their stacks from now on; what they wrote when others asked does not count."""

    def __init__(self, folder: Path):
        self._file = folder / STACKS
        self._began = self._size = self._length()

    def rests(self) -> bool:
        """Whether something was written, and nothing since this was asked last."""
        before, self._size = self._size, self._length()
        return self._began < self._size == before

    def text(self) -> str:
        """Its end where it is long."""
        try:
            with open_to_read(self._file) as file:
                file.seek(max(self._began, self._length() - LONGEST))
                return file.read(LONGEST).decode(errors="replace")
        except OSError:
            return ""

    def _length(self) -> int:
        try:
            return os.lstat(str(self._file)).st_size
        except OSError:
            return 0


def of_living(pid: int, folder: Path) -> str:
    """What a process writes of its Python threads, and goes on, if it has said that it does so when it is asked.

    One that is stopped, or hangs in the kernel, is not asked: it would write when nobody reads any more.
    """
    process = processes.inspect(pid)
    asks = process is not None and process.state not in "TtDZ" and (folder / STACKS).exists()
    if process is None or not asks or not catches(pid, STACKS_BY):
        return ""
    written, until = Written(folder), time.monotonic() + WRITE_S
    processes.signal_process(pid, process.start, STACKS_BY)
    while not written.rests() and time.monotonic() < until:
        time.sleep(LOOK_S)
    return written.text()


def catches(pid: int, number: int) -> bool:
    """Whether a process has a handler of its own for a signal; otherwise that signal might end it."""
    caught = int(processes.status(pid).get("SigCgt", "0"), 16)
    return bool(caught >> (number - 1) & 1)


def _of_kernel(process: processes.Process) -> str:
    """``pid 4242, state T: 12 threads in do_signal_stop``"""
    waits = Counter(waits_in(thread) or "no wait that the kernel tells" for thread in threads(process.pid))
    lines = [f"  {number} threads in {where}" for where, number in waits.most_common(8)]
    return "\n".join([f"pid {process.pid}, state {process.state}:", *lines])
