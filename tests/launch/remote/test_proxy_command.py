"""The program of a ProxyCommand: apart from the terminal, its end noticed, its reason named."""

import os
import shutil
import signal
import socket
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Iterator

import pytest

from cluster.spec.model import Ssh
from launch.errors import HostProblem, ProblemKind
from launch.remote.access import Access
from launch.remote.proxy_command import ProxyCommand
from tests.support.ssh.keys import new_key
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.not_fast  # programs are started


@contextmanager
def running(command: str) -> Iterator[ProxyCommand]:
    program = ProxyCommand(command)
    program.settimeout(PATIENCE_S)
    reader = Thread()
    reader.start()
    try:
        yield program
    finally:
        program.release(reader)


@pytest.fixture
def cat() -> Iterator[ProxyCommand]:
    """A program that sends everything back."""
    with running("cat") as program:
        yield program


def test_ctrl_c_and_the_end_of_the_terminal_reach_the_launcher_and_not_the_program(cat: ProxyCommand) -> None:
    assert os.getsid(cat.process.pid) == cat.process.pid != os.getsid(0)


def test_bytes_pass_as_they_come(cat: ProxyCommand) -> None:
    assert cat.send(b"some") == 4 and cat.recv(100) == b"some"
    cat.settimeout(0.01)
    with pytest.raises(socket.timeout):
        cat.recv(100)


def test_a_program_that_has_ended_is_an_error_of_the_system_to_who_sends(cat: ProxyCommand) -> None:
    cat.close()
    cat.process.wait(PATIENCE_S)
    with pytest.raises(BrokenPipeError):
        cat.send(b"more")
    cat.close()  # no other process gets a signal


@pytest.mark.skipif(
    shutil.which("ssh") is None, reason="needs ssh: this machine lacks it (apt-get install openssh-client)"
)
@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("sh -c 'echo begun >&2; echo no bastion >&2; exit 1'", "no bastion"),
        ("false", "exit code 1, without output"),
    ],
)
def test_a_program_that_fails_is_named_at_once_with_its_last_line(tmp_path: Path, command: str, reason: str) -> None:
    (tmp_path / "config").write_text(f"Host h1\n  ProxyCommand {command}\n  IdentitiesOnly yes\n")
    key = str(new_key(tmp_path / "key"))
    access = Access(Ssh(config=str(tmp_path / "config"), key=key, connect_timeout_s=2 * PATIENCE_S))
    access.prepare("h1")
    began = time.monotonic()
    with pytest.raises(HostProblem) as caught:
        access.open("h1")
    access.close()
    assert (caught.value.what, caught.value.kind) == (f"its ProxyCommand ended ({reason})", ProblemKind.UNREACHABLE)
    assert caught.value.advice.startswith("try `ssh ") and time.monotonic() - began < PATIENCE_S


def test_a_program_that_ends_with_success_is_the_end_of_the_connection() -> None:
    with running("true") as program:
        assert program.recv(100) == b""


def test_a_program_may_print_any_number_of_warnings() -> None:
    with running(f"{sys.executable} -c 'import os; os.write(2, bytes(1 << 20)); os.write(1, b\"x\")'") as program:
        assert program.recv(100) == b"x"


def test_a_process_that_the_program_leaves_behind_is_not_waited_for() -> None:
    began = time.monotonic()
    with running("sh -c 'sleep 30 & echo $!'") as program:
        left = int(program.recv(100))
    os.kill(left, signal.SIGKILL)
    assert time.monotonic() - began < 20
