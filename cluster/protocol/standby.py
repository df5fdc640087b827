"""A task's next process: it starts before its cluster does, prepares as much as possible, and waits to take over.

Meanwhile another process of the same task trains. So the waiting process writes only the file ``ready`` into the task's
folder. A line on its standard input makes it take over. If the input ends without a line, the process ends, too.
"""

import contextlib
import os
import sys
from pathlib import Path
from typing import Any, Callable, MutableMapping

STANDBY = "LAUNCH_STANDBY"  # in the environment of a waiting process
READY = "ready"


class Standby:
    """The wait of this process until it may take over its task.

    Args:
      waits: whether the process waits. A process that may train at once does not wait.
      folder: the task's own folder.
      begin: the function that is called when the process takes over.
      source: the file from which the line is read; by default this process's standard input.
    """

    def __init__(
        self, waits: bool = False, folder: Path = Path(), begin: Callable[[], None] = lambda: None, source: Any = None
    ):
        self.waits, self._folder, self._begin, self._source = waits, folder, begin, source
        if not waits:
            begin()

    @classmethod
    def from_environment(cls, environ: MutableMapping[str, str], begin: Callable[[], None]) -> "Standby":
        """Return the wait of a process that an agent started. A process without ``LAUNCH_STANDBY`` does not wait."""
        return cls(environ.pop(STANDBY, None) is not None, Path(environ.get("LAUNCH_TASK_DIR", "")), begin)

    def wait(self) -> None:
        """Wait until this process may take over its task.

        Raises:
          SystemExit: the input ended before that.
          OSError: the folder cannot be written.
        """
        if not self.waits:
            return
        (self._folder / READY).touch()
        if not (self._source or sys.stdin).readline():
            raise SystemExit(0)
        self.waits = False
        self._begin()


def is_ready(folder: Path) -> bool:
    """Return whether the next process of the task with this ``folder`` is ready, and waits to take over."""
    return os.path.lexists(str(folder / READY))


def clear(folder: Path) -> None:
    """Remove the file ``ready`` of an earlier process from ``folder``. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(str(folder / READY))
