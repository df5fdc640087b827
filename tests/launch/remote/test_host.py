"""An sshd that opens no channel for a program."""

from typing import Any, List

import paramiko
import pytest

from launch.errors import HostProblem, ProblemKind
from launch.remote.ssh_host import SshHost


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
