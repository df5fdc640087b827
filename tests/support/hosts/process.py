"""Processes told apart by number and start time, because numbers are used again."""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from pathlib import Path
from typing import IO, NamedTuple, Optional

from tests.support.hosts.errors import HostError


class Identity(NamedTuple):
    """``started``: clock ticks after the machine's boot, as in /proc/PID/stat."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> Optional["Identity"]:
        """The process that has this number now; None where there is none but a zombie."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if fields[0] in "ZX" else cls(pid, int(fields[19]))

    def alive(self) -> bool:
        """Whether this very process still runs."""
        return Identity.of(self.pid) == self

    def end(self) -> None:
        """Sends SIGKILL, if it still runs."""
        if self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


def line(stream: IO[bytes], deadline: float) -> str:
    """The next line that a child writes; empty when it ended instead. ``deadline``: of time.monotonic().

    For children that write one line and then wait: the stream must be unbuffered.

    Raises:
      HostError: nothing came before the deadline.
    """
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        if not selector.select(max(0.0, deadline - time.monotonic())):
            raise HostError("expected a line from a starting fake host, found none in time")
    return os.read(stream.fileno(), 200).decode().strip()


def kill(process: "subprocess.Popen[bytes]", timeout_s: float) -> None:
    """Ends a child of ours and closes our ends of its pipes."""
    process.kill()
    process.wait(timeout_s)
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):
                stream.close()
