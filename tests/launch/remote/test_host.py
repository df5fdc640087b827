"""An sshd that opens no channel for a program."""

from threading import Event
from typing import Any, Callable, List

import paramiko
import pytest

from launch.errors import HostProblem, ProblemKind
from launch.remote import ssh_host
from launch.remote.ssh_host import SshChannel, SshHost
from tests.support.waiting import PATIENCE_S


class Refusing:
    """Access to a host, a connection to it and its transport, all in one; its sshd opens no channel."""

    def __init__(self, error: Exception):
        self.error, self.transport = error, self

    def open(self, name: str) -> "Refusing":
        return self

    def create_session(self) -> Any:
        raise self.error

    def open_channel(self, *_: Any, **__: Any) -> Any:
        raise self.error

    def problem(self, name: str, connection: Any, error: BaseException) -> HostProblem:
        return HostProblem(name, ProblemKind.UNREACHABLE, f"the connection broke: {error}")


def told(error: Exception) -> List[str]:
    """What the problem is of a program that is to run there, and of a port there that is to be dialled."""
    host = SshHost("h1", "python3", Refusing(error))  # type: ignore[arg-type]
    with pytest.raises(HostProblem) as run:
        host.open(["true"])
    with pytest.raises(HostProblem) as dialled:
        host.dial(6006)
    return [str(run.value), str(dialled.value)]


def test_an_sshd_that_refuses_is_named_with_its_own_word_and_the_setting_to_see() -> None:
    assert told(paramiko.ChannelException(1, "{prohibited}")) == [
        "h1: sshd opens no further session ({prohibited}); raise MaxSessions in its sshd_config",
        "h1: sshd does not forward to port 6006 there ({prohibited}); set AllowTcpForwarding yes in its sshd_config",
    ]


def test_whatever_else_goes_wrong_is_a_problem_of_that_connection() -> None:
    assert told(EOFError("gone")) == ["h1: the connection broke: gone"] * 2


class Hanging(Refusing):
    """A connection whose sshd opens a session, and starts nothing in it."""

    def __init__(self) -> None:
        super().__init__(EOFError())
        self.closed = Event()

    def create_session(self) -> Any:
        return self

    def settimeout(self, seconds: float) -> None:
        """Return at once."""

    def exec_command(self, command: str) -> None:
        assert self.closed.wait(PATIENCE_S)
        raise paramiko.SSHException("Channel closed.")

    def close(self) -> None:
        self.closed.set()


def test_an_sshd_that_starts_no_program_is_waited_for_in_bounded_time_and_is_not_said_to_drop_logins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ssh_host, "OPEN_S", 0.1)
    with pytest.raises(HostProblem) as caught:
        SshHost("h1", "python3", Hanging()).open(["true"])  # type: ignore[arg-type]
    assert caught.value.kind is ProblemKind.SSHD
    assert caught.value.what == "sshd has started no program within 0 s"


def test_a_host_that_is_closed_during_its_login_has_no_connection_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    hung_up: List[Any] = []
    monkeypatch.setattr(ssh_host, "hang_up", hung_up.append)

    class Late(Refusing):
        """A login that is given up when it is almost done."""

        def __init__(self, during: Callable[[], None]):
            super().__init__(EOFError())
            self.during = during

        def open(self, name: str) -> "Late":
            self.during()
            return self

    access = Late(lambda: host.close())
    host = SshHost("h1", "python3", access)  # type: ignore[arg-type]
    with pytest.raises(HostProblem, match="it was given up during the login"):
        host.connect()
    assert hung_up == [access]
    access.during = lambda: None
    host.connect()  # a later one counts
    assert hung_up == [access]


class Broken:
    """A session whose connection has broken, which Paramiko's own thread has not noticed yet."""

    def __init__(self, error: Exception):
        self._error = error

    def settimeout(self, seconds: float) -> None:
        """Return at once."""

    def recv_stderr_ready(self) -> bool:
        return False

    def fail(self, *_: Any) -> Any:
        raise self._error

    sendall = recv = shutdown_write = close = fail


@pytest.mark.parametrize("error", [EOFError(), paramiko.SSHException("Key-exchange timed out")])
def test_a_connection_that_breaks_during_a_call_is_an_error_of_the_system_as_everywhere(error: Exception) -> None:
    channel = SshChannel(Broken(error))
    for call in (lambda: channel.send(b"x"), lambda: channel.receive(1.0), channel.end):
        with pytest.raises(OSError, match=str(error) or "the connection has ended"):
            call()
    channel.close()
