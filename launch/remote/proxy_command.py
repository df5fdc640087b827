"""A ProxyCommand of the SSH configuration: the program whose stdin and stdout carry the connection to a host.

Ctrl-C in the terminal must not reach the program, because the launcher needs its connection to stop a run. Paramiko's
own class starts the program in the launcher's process group. That class also treats the end of the program as silence,
and drops the program's stderr.
"""

import contextlib
import os
import select
import socket
import subprocess
import tempfile
import threading
from typing import Any, Optional

import fabric
import paramiko

END_S = 1.0  # for the exit code of a program that has closed its stdout
READER_S = 10.0
MOST = 4096  # bytes of stderr


class ProxyCommand(paramiko.ProxyCommand):  # type: ignore[misc]
    """The program of a ProxyCommand, with the methods of a socket. The user's shell runs it, as with OpenSSH."""

    def __init__(self, command: str):
        shell = os.environ.get("SHELL") or "/bin/sh"
        self.cmd = [shell, "-c", command if command.startswith("exec ") else f"exec {command}"]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with this object); a full pipe would block it
        self.process = subprocess.Popen(
            self.cmd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, bufsize=0,
            start_new_session=True,
        )  # fmt: skip
        self._stdin: Any = self.process.stdin
        self._stdout: Any = self.process.stdout
        self.timeout: Optional[float] = None

    def send(self, content: bytes) -> int:
        """Send bytes, and return their number. Raises OSError."""
        return os.write(self._stdin.fileno(), content)

    def recv(self, size: int) -> bytes:
        """Return some bytes; b"" once the program has ended with success.

        Raises:
          paramiko.ProxyCommandFailure: the program has failed.
          socket.timeout: no byte arrived in time.
        """
        poll = select.poll()  # select supports only 1024 open files
        poll.register(self._stdout.fileno(), select.POLLIN | select.POLLHUP)
        if not poll.poll(None if self.timeout is None else 1000 * self.timeout):
            raise socket.timeout
        data = os.read(self._stdout.fileno(), size)
        if not data:
            self._check()
        return data

    def _check(self) -> None:
        try:
            code = self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            return
        if code:
            self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - MOST))
            lines = self._errors.read(MOST).decode(errors="replace").split("\n")
            said = [line.strip() for line in lines if line.strip()]
            raise paramiko.ProxyCommandFailure(self.cmd[-1], said[-1] if said else f"exit code {code}, without output")

    def close(self) -> None:
        """End the program. Paramiko's own method may signal another process after the program has been reaped."""
        self.process.terminate()

    def release(self, reader: threading.Thread) -> None:
        """Kill the program, and close its files once the thread that reads from it has ended."""
        self.process.kill()
        reader.join(READER_S)
        for file in (self._stdin, self._stdout, self._errors):
            file.close()
        with contextlib.suppress(subprocess.TimeoutExpired):  # no communicate: a child of it may keep stdout open
            self.process.wait(END_S)


class Dialled(fabric.Connection):  # type: ignore[misc]
    """A connection whose gateway may be the command of a ProxyCommand."""

    def open_gateway(self) -> Any:
        return ProxyCommand(self.gateway) if isinstance(self.gateway, str) else super().open_gateway()
