"""Nothing of fake hosts outlives them, however their session ends.

Another session on this machine sweeps too, so no test here relies on leftovers being there.
"""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, Dict, Iterator, List, NamedTuple

import pytest

from tests.support import ROOT
from tests.support.hosts import FakeHosts
from tests.support.hosts.boot import wait
from tests.support.hosts.process import Identity
from tests.support.waiting import PATIENCE_S

_UP = "Running until Ctrl-C.\n"
_COMMAND = [sys.executable, "-m", "tests.support.hosts"]


class Session(NamedTuple):
    """A running ``python -m tests.support.hosts up``, and all that came with it."""

    process: "subprocess.Popen[str]"
    everything: List[Identity]
    folder: Path
    link: Path
    said: str

    def nothing_left(self) -> bool:
        mounts = Path("/proc/self/mountinfo").read_text()
        gone = not self.folder.exists() and not self.link.exists() and str(self.folder) not in mounts
        return gone and not any(identity.alive() for identity in self.everything)


def _family(pid: int) -> List[Identity]:
    """The process, its children, their children …"""
    children: Dict[int, List[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        children.setdefault(parent, []).append(int(stat.parent.name))
    pids = [pid]
    for each in pids:
        pids += children.get(each, [])
    found = [Identity.of(each) for each in pids]
    return [identity for identity in found if identity is not None]


def _sessions_of(pid: int) -> List[Path]:
    return list(Path("/run").glob(f"fake-hosts-{pid}-*"))


def _until_up(process: "subprocess.Popen[str]") -> str:
    """Return what ``up`` prints until its hosts are up; fail at once, with that, where it ends before."""
    assert process.stdout is not None
    printed = ""
    for line in process.stdout:
        printed += line
        if line == _UP:
            return printed
    raise AssertionError(
        f"expected {_UP.strip()!r}, found the end of the process (code {process.wait(PATIENCE_S)}): {printed}"
    )


@pytest.fixture
def session(fake_hosts: Callable[..., FakeHosts]) -> Iterator[Session]:
    """``fake_hosts`` is asked for its skip only."""
    process = subprocess.Popen(
        [*_COMMAND, "up", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    try:
        said = _until_up(process)
        folder = _sessions_of(process.pid)[0]
        link = Path("/sys/class/net") / (folder / "link").read_text()
        yield Session(process, _family(process.pid), folder, link, said)
    finally:
        process.kill()
        process.stdout.close()
        process.wait(PATIENCE_S)
        _down()


def _down() -> str:
    return subprocess.run(
        [*_COMMAND, "down"], stdout=subprocess.PIPE, text=True, cwd=ROOT, timeout=PATIENCE_S, check=True
    ).stdout


def _until(happened: Callable[[], bool]) -> None:
    wait(happened, time.monotonic() + PATIENCE_S, lambda: "expected nothing left, found leftovers")


def test_a_session_that_ends_before_its_hosts_are_up_is_reported_at_once_with_what_it_printed() -> None:
    command = [sys.executable, "-c", "import sys; print('no sshd here'); sys.exit(3)"]
    ended = subprocess.Popen(command, stdout=subprocess.PIPE, universal_newlines=True)
    with ended, pytest.raises(AssertionError, match=r"found the end of the process \(code 3\): no sshd here"):
        _until_up(ended)


def test_nothing_is_left_after_the_with_block(fake_hosts: Callable[..., FakeHosts]) -> None:
    before = set(_family(os.getpid()))
    with fake_hosts(2):
        during = [identity for identity in _family(os.getpid()) if identity not in before]
        assert len(during) >= 2 * 4  # nsenter, unshare, init and sshd of each
        (folder,) = _sessions_of(os.getpid())
        link = Path("/sys/class/net") / (folder / "link").read_text()
        assert link.exists()
    assert not any(identity.alive() for identity in during)
    assert not folder.exists()
    assert not link.exists()


def _printed_ssh_command(session: Session) -> List[str]:
    found = re.search(r"In a shell: +(.*)", session.said)
    assert found is not None
    return found[1].split()


def test_the_command_line_that_up_prints_reaches_a_host(session: Session) -> None:
    assert subprocess.check_output(_printed_ssh_command(session), timeout=PATIENCE_S) == b"h1\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_up_ends_well_and_leaves_nothing_when_asked_to_end(session: Session, number: signal.Signals) -> None:
    session.process.send_signal(number)
    assert session.process.wait(PATIENCE_S) == 0
    assert session.nothing_left()


def test_asking_up_twice_to_end_does_not_disturb_its_end(session: Session) -> None:
    for _ in range(3):
        session.process.send_signal(signal.SIGINT)
        session.process.send_signal(signal.SIGTERM)
    assert session.process.wait(PATIENCE_S) == 0
    assert session.nothing_left()


def test_nothing_is_left_when_the_session_is_killed(session: Session) -> None:
    assert len(session.everything) >= 1 + 2 * 4
    assert session.link.exists()
    session.process.kill()
    session.process.wait(PATIENCE_S)
    _until(session.nothing_left)


def test_down_leaves_a_running_session_alone(session: Session) -> None:
    assert str(session.folder) not in _down()
    assert session.process.poll() is None
    assert subprocess.check_output(_printed_ssh_command(session), timeout=PATIENCE_S) == b"h1\n"


def test_down_removes_what_a_killed_rack_and_session_left(session: Session) -> None:
    pid, started = (session.folder / "holder").read_text().split()
    Identity(int(pid), int(started)).end()
    session.process.kill()
    session.process.wait(PATIENCE_S)
    _until(lambda: not any(identity.alive() for identity in session.everything))
    _down()
    assert session.nothing_left()


def test_down_ends_a_rack_that_outlived_its_session(session: Session) -> None:
    """A child that the session forked may hold the pipe on which the rack waits for the session's end."""
    stdin = Path(f"/proc/{(session.folder / 'holder').read_text().split()[0]}/fd/0")
    with stdin.open("wb"):
        session.process.kill()
        session.process.wait(PATIENCE_S)
        _down()
        _until(session.nothing_left)
