"""The stacks of a process's threads, from the process itself and from the kernel."""

import os
import signal
import time
from collections import Counter
from pathlib import Path

from cluster.protocol.heartbeat import STACKS, STACKS_BY
from cluster.protocol.shared_files import open_to_read
from launch.agent.linux import processes
from launch.agent.linux.procfs import threads, waits_in

WRITE_S = 1.5  # how long a process has to write them
LOOK_S = 0.1
LONGEST = 16_000  # characters


class Stacks:
    """The stacks of one process, which it writes from now on if it can, while the agent waits.

    Kill the process soon. The constructor continues a process that a signal has stopped, so that the process can write.
    """

    def __init__(self, pid: int, folder: Path):
        process = processes.inspect(pid)
        self._written = Written(folder)
        self._of_kernel = "" if process is None else _kernel_stacks(process)
        if process is not None and catches(pid, STACKS_BY):
            processes.signal_process(pid, process.start, STACKS_BY)
            processes.signal_process(pid, process.start, signal.SIGCONT)

    def are_written(self) -> bool:
        """Return whether the process seems to have written all; call this repeatedly."""
        return self._written.is_at_rest()

    def text(self) -> str:
        """Return the kernel's stacks, then the text that the process has written.

        Of a long text of the process, the method returns the end.
        """
        return "\n".join(filter(None, [self._of_kernel, self._written.text()]))


class Written:
    """The stacks that a task's processes write from now on, without those that others asked for before."""

    def __init__(self, folder: Path):
        self._file = folder / STACKS
        self._began = self._size = self._length()

    def is_at_rest(self) -> bool:
        """Return whether something was written, and nothing since the last call."""
        before, self._size = self._size, self._length()
        return self._began < self._size == before

    def text(self) -> str:
        """Return the written text, or its end where the text is long."""
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


def request_stacks(pid: int, folder: Path) -> str:
    """Return the stacks of its Python threads that a process writes on request.

    The process goes on. Only a process that has announced that it writes stacks, and catches ``STACKS_BY``, is asked. A
    process that is stopped, or hangs in the kernel, is not asked: it would write when nobody reads any more.
    """
    process = processes.inspect(pid)
    asks = process is not None and process.state not in "TtDZ" and (folder / STACKS).exists()
    if process is None or not asks or not catches(pid, STACKS_BY):
        return ""
    written, until = Written(folder), time.monotonic() + WRITE_S
    processes.signal_process(pid, process.start, STACKS_BY)
    while not written.is_at_rest() and time.monotonic() < until:
        time.sleep(LOOK_S)
    return written.text()


def catches(pid: int, number: int) -> bool:
    """Return whether a process has a handler of its own for a signal.

    Without a handler the signal might end the process.
    """
    caught = int(processes.status(pid).get("SigCgt", "0"), 16)
    return bool(caught >> (number - 1) & 1)


def _kernel_stacks(process: processes.Process) -> str:
    """``pid 4242, state T: 12 threads in do_signal_stop``"""
    waits = Counter(waits_in(thread) or "no wait that the kernel reports" for thread in threads(process.pid))
    lines = [f"  {number} threads in {where}" for where, number in waits.most_common(8)]
    return "\n".join([f"pid {process.pid}, state {process.state}:", *lines])
