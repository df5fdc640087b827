"""The processes ``srun`` of a launcher: most end with what the launcher asks; some last as long as an agent."""

import contextlib
import subprocess
import threading
import time
from typing import List, Sequence

END_S = 5.0  # for steps whose programs have seen the end of their stdin
_LEFT: List["subprocess.Popen[bytes]"] = []  # kept, since Python wants every child reaped


def leave(srun: "subprocess.Popen[bytes]") -> None:
    """Leave a step alone, because an agent is in it."""
    _LEFT[:] = [*_living(_LEFT), srun]


class Ending:
    """The steps that are to end. The launcher waits for all of them together, at its own end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sruns: List[subprocess.Popen[bytes]] = []

    def add(self, srun: "subprocess.Popen[bytes]") -> None:
        """Note a step whose program has seen the end of its stdin."""
        with self._lock:
            self._sruns = [*_living(self._sruns), srun]

    def close(self) -> None:
        """Wait for all steps; end those that have not ended in time."""
        late = _outliving(self._sruns, END_S)
        for srun in late:
            srun.terminate()  # it then ends its step; killed, it would leave the step running
        for srun in _outliving(late, END_S):
            srun.kill()


def _outliving(sruns: Sequence["subprocess.Popen[bytes]"], seconds: float) -> List["subprocess.Popen[bytes]"]:
    """Return those that have not ended after so many seconds."""
    until = time.monotonic() + seconds
    for srun in sruns:
        with contextlib.suppress(subprocess.TimeoutExpired):
            srun.wait(max(0.0, until - time.monotonic()))
    return _living(sruns)


def _living(sruns: Sequence["subprocess.Popen[bytes]"]) -> List["subprocess.Popen[bytes]"]:
    return [srun for srun in sruns if srun.poll() is None]
