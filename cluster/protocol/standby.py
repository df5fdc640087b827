"""A task's next process: it starts before its turn, prepares as much as possible, and waits to take over.

Meanwhile another process of the same task may train. So the waiting process writes only the file ``ready`` into the
task's folder. A line on its standard input is its turn, which may come before the process is ready. If the input ends
without a line, the process ends, too.
"""

import contextlib
import os
import threading
from functools import partial
from pathlib import Path
from typing import Callable, MutableMapping, Optional

from cluster.protocol.outcome import Reporter

STANDBY = "LAUNCH_STANDBY"  # in the environment of a waiting process
READY = "ready"


def _own_input() -> Callable[[], bytes]:
    """Return what reads this process's standard input, which is empty for the job and for what the job starts.

    A process that the job forks closes ``sys.stdin``, and would wait for a thread that reads from it.
    """
    turns, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return lambda: os.read(turns, 1)


class Standby:
    """The wait of this process until it may take over its task.

    Args:
      waits: whether the process waits. A process that may train at once does not wait.
      folder: the task's own folder.
      reporter: begins its heartbeats when the process takes over; None reports nothing.
      source: returns the line, or nothing at the end of the input; by default it reads this process's standard input.
      leave: ends the process.
    """

    def __init__(
        self,
        waits: bool = False,
        folder: Path = Path(),
        reporter: Optional[Reporter] = None,
        source: Optional[Callable[[], bytes]] = None,
        leave: Callable[[], None] = partial(os._exit, 0),
    ):
        self._folder, self._leave = folder, leave
        self._reporter = reporter or Reporter(None)
        self._turn, self._is_recorded = threading.Event(), not waits
        if waits:
            arguments = [source or _own_input()]
            threading.Thread(target=self._await_turn, args=arguments, name="standby", daemon=True).start()
        else:
            self._take_over()

    @classmethod
    def from_environment(cls, environ: MutableMapping[str, str], reporter: Reporter) -> "Standby":
        """Return the wait of a process that an agent started. A process without ``LAUNCH_STANDBY`` does not wait."""
        return cls(environ.pop(STANDBY, None) is not None, Path(environ.get("LAUNCH_TASK_DIR", "")), reporter)

    @property
    def waits(self) -> bool:
        """Return whether the turn of this process has not come yet."""
        return not self._turn.is_set()

    def _await_turn(self, source: Callable[[], bytes]) -> None:
        if source():
            self._take_over()
        else:
            self._leave()

    def _take_over(self) -> None:
        try:
            self._reporter.heartbeat.begin()
        finally:
            self._turn.set()

    def wait(self) -> None:
        """Wait until this process may take over its task; the time before is in no record, since others trained then.

        Raises:
          OSError: the folder cannot be written.
        """
        if self.waits:
            (self._folder / READY).touch()
            self._turn.wait()
        if not self._is_recorded:
            self._is_recorded = True
            self._reporter.recorder.begin("starting")


def is_ready(folder: Path) -> bool:
    """Return whether the next process of the task with this ``folder`` is ready, and waits to take over."""
    return os.path.lexists(str(folder / READY))


def clear(folder: Path) -> None:
    """Remove the file ``ready`` of an earlier process from ``folder``. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(str(folder / READY))
