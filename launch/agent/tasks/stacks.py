"""The stack traces of a process's threads, from the process itself and from the kernel."""

import contextlib
import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Iterable, Optional

from cluster.protocol.heartbeat import STACKS, STACKS_BY
from cluster.protocol.shared_files import open_to_read
from launch.agent.linux import processes
from launch.agent.linux.procfs import names_in, threads, waits_in

WRITE_S = 1.5  # the time that a process has to write its stacks
LOOK_S = 0.1
LONGEST = 16_000  # characters
# Of a program under ``command:``; ``program_stacks.sitecustomize`` has the same two. No program is known to use it.
PROGRAM_STACKS, PROGRAM_STACKS_BY = "program_stacks.txt", signal.SIGRTMAX - 5


class Stacks:
    """The stack traces that a process writes, if it can, before the caller kills it.

    The constructor asks the process for its stacks. It also sends SIGCONT, so that a stopped process can write them.
    """

    def __init__(self, pid: int, folder: Path):
        process = processes.inspect(pid)
        self._written = Written(folder)
        self._of_kernel = "" if process is None else _kernel_stacks(process)
        if process is not None and catches(pid, STACKS_BY):
            processes.signal_process(pid, process.start, STACKS_BY)
            processes.signal_process(pid, process.start, signal.SIGCONT)

    def are_written(self) -> bool:
        """Return whether the process seems to have finished writing; call this method repeatedly."""
        return self._written.is_at_rest()

    def text(self) -> str:
        """Return the kernel's stacks, then the text that the process has written.

        If the process has written a long text, the result has only its end.
        """
        return "\n".join(filter(None, [self._of_kernel, self._written.text()]))


class Written:
    """The stack traces that a task's processes write from now on, without those from earlier requests."""

    def __init__(self, folder: Path, name: str = STACKS):
        self._file = folder / name
        self._began = self._size = self._length()

    def is_at_rest(self) -> bool:
        """Return whether stacks have been written, and nothing more since the last call."""
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
    """Ask a process for the stacks of its Python threads, and return them; "" if it cannot write them.

    The process keeps running. The function waits at most ``WRITE_S``.
    """
    written, until = ask([pid], folder), time.monotonic() + WRITE_S
    if written is None:
        return ""
    while not written.is_at_rest() and time.monotonic() < until:
        time.sleep(LOOK_S)
    return written.text()


def ask(pids: Iterable[int], folder: Path) -> Optional[Written]:
    """Ask one process for the stacks of its Python threads: the first of ``pids`` that can write them.

    The result is None if no process can write its stacks.

    The process keeps running. The function asks only a process that has announced that it writes stacks, and that
    catches the signal. It does not ask a process that is stopped or hangs in the kernel, which would write too late.
    """
    for process in filter(None, map(processes.inspect, pids)):
        number = None if process.state in "TtDZ" else _asked_by(process.pid, folder)
        if number is not None:
            written = Written(folder, STACKS if number == STACKS_BY else PROGRAM_STACKS)
            processes.signal_process(process.pid, process.start, number)
            return written
    return None


def _asked_by(pid: int, folder: Path) -> Optional[int]:
    """Return the signal on which a process writes its stacks; None where it writes none."""
    if (folder / STACKS).exists() and catches(pid, STACKS_BY):
        return STACKS_BY
    # A program may have closed the file, whose number then means another file.
    holds = catches(pid, PROGRAM_STACKS_BY) and _holds(pid, folder / PROGRAM_STACKS)
    return PROGRAM_STACKS_BY if holds else None


def _holds(pid: int, file: Path) -> bool:
    """Return whether a process has a file open."""
    for number in names_in(Path(f"/proc/{pid}/fd")):
        with contextlib.suppress(OSError):  # the process has closed it since, or ``file`` does not exist
            if os.path.samefile(f"/proc/{pid}/fd/{number}", str(file)):
                return True
    return False


def main_first(text: str) -> str:
    """Reverse the order of stacks that faulthandler has written, because it writes the main thread last."""
    return "\n\n".join(reversed(text.strip().split("\n\n")))


def catches(pid: int, number: int) -> bool:
    """Return whether a process has its own handler for a signal.

    Without a handler the signal might end the process.
    """
    caught = int(processes.status(pid).get("SigCgt", "0"), 16)
    return bool(caught >> (number - 1) & 1)


def _kernel_stacks(process: processes.Process) -> str:
    """Return lines such as ``pid 4242, state T:`` and ``12 threads in do_signal_stop``."""
    waits = Counter(waits_in(thread) or "no wait that the kernel reports" for thread in threads(process.pid))
    lines = [f"  {number} threads in {where}" for where, number in waits.most_common(8)]
    return "\n".join([f"pid {process.pid}, state {process.state}:", *lines])
