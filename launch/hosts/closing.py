"""Wait for processes on this machine that end because their stdin is closed; one wait covers all of them."""

import contextlib
import subprocess
import threading
import time
from typing import List, Sequence

END_S = 5.0


class EndingProcesses:
    """The processes that should end because their stdin is closed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ending: List[subprocess.Popen[bytes]] = []

    def add(self, process: "subprocess.Popen[bytes]") -> None:
        """Record a process whose stdin is closed."""
        with self._lock:
            self._ending = [*living(self._ending), process]

    def close(self) -> None:
        """Wait for all processes; terminate the processes that have not ended after ``END_S`` seconds."""
        late = _outliving(self._ending, END_S)
        for process in late:
            process.terminate()  # srun then ends its step, and ssh its session; a killed one would leave them
        for process in _outliving(late, END_S):
            process.kill()


def _outliving(processes: Sequence["subprocess.Popen[bytes]"], seconds: float) -> List["subprocess.Popen[bytes]"]:
    """Return the processes that have not ended after ``seconds``."""
    until = time.monotonic() + seconds
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, until - time.monotonic()))
    return living(processes)


def living(processes: Sequence["subprocess.Popen[bytes]"]) -> List["subprocess.Popen[bytes]"]:
    """Return the processes that have not ended."""
    return [process for process in processes if process.poll() is None]
