"""A process that is forked away: on its own, with nothing of ours but what it was left, and named for ps."""

import os
import signal
from pathlib import Path
from typing import Callable, Iterator, List

import pytest

from launch.agent.linux.daemonize import STUMBLED, fork_away
from launch.agent.linux.processes import command_line, inspect
from tests.support.waiting import eventually

pytestmark = pytest.mark.not_fast  # starts programs, by what it tests

Begin = Callable[[Callable[[], None]], int]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Forks a function away; its process is ended with the test."""
    begun: List[int] = []
    kept, other = os.pipe()

    def fork(run: Callable[[], None]) -> int:
        begun.append(fork_away(run, tmp_path / "log", kept, "launch agent of r-1 on h1"))
        return begun[-1]

    yield fork
    for pid in begun:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    os.close(kept)
    os.close(other)


def say(text: str) -> None:
    """Past pytest, which has put its own in the place of sys.stdout."""
    os.write(1, text.encode())


def said(tmp_path: Path) -> str:
    """What it has written, once that ends with a line."""
    log = tmp_path / "log"
    return str(eventually("a word in the log", lambda: log.exists() and "end\n" in log.read_text() and log.read_text()))


def test_it_leads_a_session_of_its_own_and_is_named_in_ps(begin: Begin) -> None:
    pid = begin(signal.pause)
    eventually("its name", lambda: command_line(pid).rstrip("\0 ") == "launch agent of r-1 on h1")
    process = inspect(pid)
    assert process is not None and (process.session, process.group) == (pid, pid)


def test_it_has_no_file_of_ours_but_the_one_it_was_left(begin: Begin, tmp_path: Path) -> None:
    begin(lambda: say(f"{len(os.listdir('/proc/self/fd'))} {os.read(0, 10)!r}\nend\n"))
    assert said(tmp_path) == "5 b''\nend\n"  # three of its own, the one left, and the listing itself


def test_what_it_raises_is_in_its_log_and_goes_no_further(begin: Begin, tmp_path: Path) -> None:
    def stumble() -> None:
        say("end\n")
        raise ZeroDivisionError

    pid = begin(stumble)
    assert os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT).si_status == STUMBLED
    assert "ZeroDivisionError" in said(tmp_path)
