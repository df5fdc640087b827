"""Booting fake hosts: the session's side of the conversation with ``boot.sh``."""

import socket
import subprocess
import time
from pathlib import Path
from typing import Callable, List, Sequence

from tests.support.hosts import tool
from tests.support.hosts.console import SSH_PORT
from tests.support.hosts.errors import HostError
from tests.support.hosts.process import kill, line
from tests.support.hosts.rack import Rack

TIMEOUT_S = 120.0  # 64 hosts on a busy machine
_RETRY_S = 0.02
_UNSHARE = ["unshare", "--net", "--pid", "--mount", "--uts", "--ipc", "--fork", "--kill-child"]


class Boot:
    """One boot of one host, from power on to power off."""

    def __init__(self, rack: Rack, name: str, address: str, visible: Sequence[str]):
        self._name = name
        self._address = address
        self._messages = rack.folder / f"{name}.boot.log"
        self._process = self._started(rack, visible)

    def _started(self, rack: Rack, visible: Sequence[str]) -> "subprocess.Popen[bytes]":
        script = str(Path(__file__).with_name("boot.sh"))
        places = [str(rack.folder / "disks" / self._name), str(rack.folder / "seeds" / self._name)]
        enter = ["nsenter", f"--target={rack.pid}", "--mount", "--pid", "--ipc"]
        with self._messages.open("wb") as messages:
            return subprocess.Popen(
                [*enter, *_UNSHARE, "sh", script, *places, self._name, f"{self._address}/24", *visible],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=messages,
                bufsize=0,
                env=tool.environment(),
                start_new_session=True,  # so that Ctrl-C reaches the session only
            )

    def init(self, deadline: float) -> int:
        """First thing that the host says: its process 1, as this machine numbers it."""
        return int(self._said(deadline))

    def go_on(self) -> None:
        """Tells the host that its cable is laid."""
        if self._process.stdin is not None:
            self._process.stdin.write(b"\n")

    def up(self, deadline: float) -> None:
        """Returns when the host has its network."""
        self._said(deadline)

    def answers(self, deadline: float) -> None:
        """Returns when sshd accepts connections."""
        wait(lambda: _accepts(self._address), deadline, self._silent)

    @property
    def running(self) -> bool:
        """Whether the host's process 1 is there."""
        return self._process.poll() is None

    def reap(self) -> None:
        """Waits for the end of a host that was, or is being, ended."""
        self._process.wait(TIMEOUT_S)
        kill(self._process, TIMEOUT_S)

    def _said(self, deadline: float) -> str:
        text = line(self._process.stdout, deadline) if self._process.stdout else ""
        if not text:
            raise HostError(f"{self._name}: expected it to boot, found that it ended: {self._messages.read_text()}")
        return text

    def _silent(self) -> str:
        said = self._messages.read_text().strip()
        return f"{self._name}: expected sshd to accept connections at {self._address}, found none in time; {said}"


def wait(happened: Callable[[], bool], deadline: float, missing: Callable[[], str]) -> None:
    """Returns once ``happened``; raises HostError with ``missing()`` after the deadline of time.monotonic()."""
    while not happened():
        if time.monotonic() > deadline:
            raise HostError(missing())
        time.sleep(_RETRY_S)


def _accepts(address: str) -> bool:
    try:
        socket.create_connection((address, SSH_PORT), timeout=_RETRY_S * 10).close()
    except OSError:
        return False
    return True


def hidden(paths: Sequence[str]) -> List[str]:
    """Those of ``paths`` that a host would not see: on other file systems than /, or where it has its own.

    They are mounted into every host, read-only.
    """
    real = dict.fromkeys(str(Path(path).resolve()) for path in paths)
    root = Path("/").stat().st_dev
    return [path for path in real if path.startswith(("/tmp/", "/run/", "/dev/")) or Path(path).stat().st_dev != root]
