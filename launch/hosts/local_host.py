"""This machine as a host: programs are subprocesses, without SSH."""

import os
import select
import socket
import subprocess
import tempfile
from typing import Mapping, Optional, Sequence

from launch.errors import HostProblem, ProblemKind
from launch.hosts.channel import CHUNK, Channel, Host, Silence, command_line

DIAL_S = 10.0
END_S = 5.0


class LocalChannel(Channel):
    """A subprocess that writes its stderr to a temporary file, so that the subprocess never blocks on the launcher.

    Args:
      env: the environment of the subprocess; None for this process's environment.
    """

    def __init__(self, argv: Sequence[str], env: Optional[Mapping[str, str]] = None):
        super().__init__()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed by close)
        try:
            # In a separate session: the launcher handles Ctrl-C in the terminal, not the agent.
            self._process = subprocess.Popen(
                list(argv), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
                start_new_session=True, bufsize=0, env=env,
            )  # fmt: skip
        except OSError:
            self._errors.close()
            raise

    def send(self, data: bytes) -> None:
        if self._process.stdin is not None:
            view = memoryview(data)
            while view:
                view = view[os.write(self._process.stdin.fileno(), view) :]

    def receive(self, timeout_s: float) -> bytes:
        if self._process.stdout is None or not _readable(self._process.stdout.fileno(), timeout_s):
            raise Silence
        return os.read(self._process.stdout.fileno(), CHUNK)

    def end(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()

    def complaint(self) -> str:
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - CHUNK))
        return self._errors.read(CHUNK).decode(errors="replace").strip()

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            if pipe is not None:
                pipe.close()
        self._end()

    def _end(self) -> None:
        """Wait for the end of the program after its stdin was closed; end the program if it does not end itself."""
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(END_S)


def _readable(handle: int, timeout_s: float) -> bool:
    """Return whether bytes, or the end, can be read within ``timeout_s``.

    The function uses poll, because select supports only 1024 open files.
    """
    poll = select.poll()
    poll.register(handle, select.POLLIN | select.POLLHUP)
    return bool(poll.poll(timeout_s * 1000))


def _at_home(argv: Sequence[str]) -> Sequence[str]:
    return [os.path.expanduser(argv[0]), *argv[1:]]


class LocalHost(Host):
    """This machine."""

    def connect(self) -> None:
        """Do nothing, because this machine needs no connection."""

    def open(self, argv: Sequence[str]) -> Channel:
        try:
            return LocalChannel(["/bin/sh", "-c", command_line(argv, self.before)] if self.before else _at_home(argv))
        except OSError as error:
            why = os.strerror(error.errno or 0)
            unstarted = f"cannot start {argv[0]}: {why}"
            raise HostProblem(self.name, ProblemKind.NO_PYTHON, unstarted, advice="see the key python") from error

    def dial(self, port: int) -> socket.socket:
        try:
            connection = socket.create_connection(("127.0.0.1", port), DIAL_S)
        except OSError as error:
            raise HostProblem(self.name, ProblemKind.UNREACHABLE, f"no answer at port {port}: {error}") from error
        connection.settimeout(None)
        return connection
