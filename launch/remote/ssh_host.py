"""A host reached over SSH: one connection, and the programs that run through it."""

import socket
import threading
import time
from contextlib import contextmanager, suppress
from typing import Any, Iterator, Optional, Sequence

import paramiko

from launch.errors import HostProblem, ProblemKind
from launch.hosts.channel import CHUNK, LOGIN_SHELL, Channel, Host, Silence, command_line
from launch.remote.access import Access, hang_up

OPEN_S = 20.0
SEE_CONSOLE = "that host hangs, or its login waits for a file server; see the host's console and load"


class _NoStart(Exception):
    """Sshd has opened a session, and started no program in it."""


@contextmanager
def _ended_after(seconds: float, session: Any) -> Iterator[None]:
    """End a session on which Paramiko waits without a limit; then raise _NoStart."""
    late = threading.Event()

    def end() -> None:
        late.set()
        session.close()

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    except paramiko.SSHException as error:
        if late.is_set():
            raise _NoStart from error
        raise
    finally:
        timer.cancel()


@contextmanager
def _as_os_error() -> Iterator[None]:
    """Raise OSError where a connection breaks during a call, before Paramiko's own thread has noticed it."""
    try:
        yield
    except (EOFError, paramiko.SSHException) as error:
        raise OSError(str(error) or "the connection has ended") from error


class SshChannel(Channel):
    """One SSH session that runs one program."""

    def __init__(self, session: Any):
        super().__init__()
        self._session = session
        self._errors = b""

    def send(self, data: bytes) -> None:
        self._session.settimeout(OPEN_S)
        with _as_os_error():
            self._session.sendall(data)

    def receive(self, timeout_s: float) -> bytes:
        self._drain_errors()
        self._session.settimeout(timeout_s)
        try:
            with _as_os_error():
                data: bytes = self._session.recv(CHUNK)
        except socket.timeout:
            raise Silence from None
        return data

    def end(self) -> None:
        with _as_os_error():
            self._session.shutdown_write()

    def _drain_errors(self) -> None:
        while self._session.recv_stderr_ready():
            self._errors = (self._errors + self._session.recv_stderr(CHUNK))[-CHUNK:]

    def complaint(self) -> str:
        until = time.monotonic() + OPEN_S
        while not self._session.exit_status_ready() and time.monotonic() < until:
            self._session.status_event.wait(0.1)
        self._drain_errors()
        return self._errors.decode(errors="replace").strip()

    def close(self) -> None:
        with suppress(OSError), _as_os_error():
            self._session.close()


class SshHost(Host):
    """A host reached by its name in the hosts file, as the SSH configuration resolves that name."""

    shell = LOGIN_SHELL

    def __init__(self, name: str, python: str, access: Access, before: Sequence[str] = ()):
        super().__init__(name, python, before)
        self._access = access
        self._connection: Optional[Any] = None
        self._closings = 0

    def look_up(self) -> None:
        self._access.look_up(self.name)

    def prepare(self) -> None:
        self._access.prepare(self.name)

    def connect(self) -> None:
        closings = self._closings
        connection = self._access.open(self.name)
        if self._closings != closings:
            hang_up(connection)
            raise HostProblem(self.name, ProblemKind.SLOW, "it was given up during the login")
        self._connection = connection

    def open(self, argv: Sequence[str]) -> Channel:
        refused = "sshd opens no further session ({})"
        with self._connected(refused, "raise MaxSessions in its sshd_config") as connection:
            session = connection.create_session()
            session.settimeout(OPEN_S)
            with _ended_after(OPEN_S, session):
                session.exec_command(command_line(argv, self.before))
        return SshChannel(session)

    def dial(self, port: int) -> Any:
        near, far = ("127.0.0.1", 0), ("127.0.0.1", port)
        refused = f"sshd does not forward to port {port} there ({{}})"
        with self._connected(refused, "set AllowTcpForwarding yes in its sshd_config") as connection:
            return connection.transport.open_channel("direct-tcpip", far, near, timeout=OPEN_S)

    @contextmanager
    def _connected(self, refused: str, advice: str) -> Iterator[Any]:
        """Provide a connection on which to open a channel.

        If sshd refuses the channel, the HostProblem has ``refused`` followed by sshd's own text.
        """
        if self._connection is None:
            self.connect()
        try:
            yield self._connection
        except _NoStart as error:
            hangs = f"sshd has started no program within {OPEN_S:.0f} s"
            raise HostProblem(self.name, ProblemKind.SSHD, hangs, advice=SEE_CONSOLE) from error
        except paramiko.ChannelException as error:
            raise HostProblem(self.name, ProblemKind.SSHD, refused.format(error.text), advice=advice) from error
        except Exception as error:
            raise self._access.problem(self.name, self._connection, error) from error

    def close(self) -> None:
        super().close()
        self._closings += 1
        if self._connection is not None:
            hang_up(self._connection)
            self._connection = None
