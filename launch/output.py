"""The launcher's stdout and stderr, and the reaction of a verb if one of them is full, closed, or no longer read.

A verb that trains, or that changes hosts, continues: a disk that is full must not end a run of days. Such a verb
reports once, on stderr, that it cannot print. Any other verb ends, because its output is its only purpose. If the
reader of a pipe has ended, that verb ends without a message, as other command-line tools do.
"""

import errno
import io
import os
import select
import signal
import sys
from typing import Any, Callable

from launch.errors import LaunchError

STALL_S = 3.0  # for a reader that stands still; far below the lease of an attached run
GOES_ON = frozenset(("down", "drain", "grid", "prune", "restart", "run", "setup", "sweep", "up", "verify"))


class OutputLost(LaunchError):
    """The output of a verb cannot be written; the error's text is empty where the reader of the output has ended."""

    def __init__(self, why: str, number: int):
        super().__init__("" if number == errno.EPIPE else why)
        self.exit_code = 128 + signal.SIGPIPE if number == errno.EPIPE else self.exit_code


class Output(io.RawIOBase):
    """An open file that the launcher prints to.

    Attributes:
      goes_on: whether the verb continues after a failed write, which then counts as done. In that case the function
        ``lost`` is called with the reason of the first failure; otherwise the write raises ``OutputLost``.
    """

    def __init__(self, handle: int, name: str, lost: Callable[[str], None], goes_on: bool = False):
        super().__init__()
        self._handle, self._name, self._lost, self.goes_on = handle, name, lost, goes_on
        self._failed = False

    def fileno(self) -> int:
        return self._handle

    def isatty(self) -> bool:
        return os.isatty(self._handle)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        """Write the first part of ``data``, and return its length; with ``goes_on``, wait only briefly for a reader."""
        try:
            if not self._is_read():
                raise OSError(errno.EAGAIN, f"its reader has read nothing for {STALL_S:.0f} s")
            return os.write(self._handle, data[: select.PIPE_BUF] if self.goes_on else data)
        except OSError as error:
            why = "it is closed" if error.errno == errno.EBADF else error.strerror
            self._fail(f"cannot print to {self._target()}: {why}", error.errno or 0)
        return len(data)

    def _is_read(self) -> bool:
        """Return whether a write of ``PIPE_BUF`` bytes ends at once.

        Where the verb goes on, wait for that only before the first failure. Otherwise wait without a limit, as a write
        does; a pipe or terminal that another program has made non-blocking does not wait by itself.
        """
        poll = select.poll()
        poll.register(self._handle, select.POLLOUT)
        if not self.goes_on:
            return bool(poll.poll())
        return bool(poll.poll(0 if self._failed else STALL_S * 1000))

    def _fail(self, why: str, number: int) -> None:
        first, self._failed = not self._failed, True
        if not self.goes_on:
            if first:  # the exit of Python flushes again
                raise OutputLost(why, number)
        elif first:
            self._lost(f"{why}; this command continues without it")

    def _target(self) -> str:
        """Return the name of the file, with its path where it has one."""
        try:
            path = os.readlink(f"/proc/self/fd/{self._handle}")
        except OSError:
            return self._name
        return f"{path} ({self._name})" if path.startswith("/") and path != os.devnull else self._name


def install() -> Output:
    """Replace ``sys.stdout`` and ``sys.stderr`` by streams through ``Output``; return the ``Output`` of stdout."""
    _fill()
    errors = _text(Output(2, "stderr", lambda why: None, goes_on=True), sys.stderr)

    def report(why: str) -> None:
        # not sys.stderr: a live view puts stdout there, where this write has failed
        print(why, file=errors, flush=True)

    output = Output(1, "stdout", report)
    sys.stdout, sys.stderr = _text(output, sys.stdout), errors
    return output


def _fill() -> None:
    """Open a file in the place of each closed one of 0, 1 and 2, so that no socket takes its number.

    The file can be read, which ends at once, and not be written.
    """
    for handle in (0, 1, 2):
        try:
            os.fstat(handle)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)  # the lowest free number
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115 (as long as this process)


def _text(output: Output, former: Any) -> io.TextIOWrapper:
    """Return a text stream with the encoding of the former one, which is None where the file was closed."""
    encoding, errors = getattr(former, "encoding", None), getattr(former, "errors", None)
    by_line = bool(getattr(former, "line_buffering", False)) or output.isatty() or output.goes_on
    return io.TextIOWrapper(io.BufferedWriter(output), encoding, errors or "backslashreplace", line_buffering=by_line)
