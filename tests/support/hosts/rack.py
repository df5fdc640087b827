"""What fake hosts are plugged into: a switch, disks, and a cable to this machine."""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Iterator, List

from tests.support.hosts import tool
from tests.support.hosts.errors import HostError
from tests.support.hosts.process import Identity, kill, line

_RECORDS = "/run"
_PREFIX = "fake-hosts-"
_NAMESPACES = ["--net", "--mount", "--pid", "--ipc"]
_TIMEOUT_S = 120.0  # more than a busy machine needs


class Rack:
    """One process in namespaces of its own: hosts, switch and disks end with it (see ``hold.sh``).

    ``folder``: keys and configuration, readable from this machine; ``number``: the third
    byte of the subnet 10.77.<number>.0/24, ours alone.
    """

    def __init__(self) -> None:
        owner = Identity.of(os.getpid())
        if owner is None:
            raise HostError("/proc: expected an entry of this process, found none; mount /proc")
        prefix = f"{_PREFIX}{owner.pid}-{owner.started}-"
        self.folder = Path(tempfile.mkdtemp(prefix=prefix, dir=_RECORDS))
        self._process = self._hold()
        self._link = ""
        try:
            self.pid = self._started()
            self.number = self._plug_into_this_machine()
        except BaseException:
            self.close()
            raise

    def _hold(self) -> "subprocess.Popen[bytes]":
        script = str(Path(__file__).with_name("hold.sh"))
        return subprocess.Popen(
            ["unshare", *_NAMESPACES, "--fork", "--kill-child", "sh", script, str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=tool.environment(),
            start_new_session=True,  # so that Ctrl-C reaches the session only, which then cleans up
        )

    def _started(self) -> int:
        stdout = self._process.stdout
        text = line(stdout, time.monotonic() + _TIMEOUT_S) if stdout else ""
        holder = Identity.of(int(text)) if text else None
        if holder is None:
            raise HostError("the fake hosts' rack: expected its process number, found that it ended; see its messages")
        (self.folder / "holder").write_text(f"{holder.pid} {holder.started}")
        return holder.pid

    def _plug_into_this_machine(self) -> int:
        number = self._free_number()
        self._link = f"fh{number}"
        (self.folder / "link").write_text(self._link)
        cable = f"link set {self._link} addrgenmode none up\naddress add {self.launcher(number)}/24 dev {self._link}\n"
        tool.run(["ip", "-batch", "-"], cable)
        tool.network(self.pid, ["ip", "link", "set", "uplink", "master", "switch", "addrgenmode", "none", "up"])
        return number

    def _free_number(self) -> int:
        """Making a link of a name is what makes a number ours: of two sessions only one succeeds."""
        for number in sorted(range(256), key=lambda n: (n - os.getpid()) % 256):
            if self._claim(number):
                return number
        raise HostError(
            "fake hosts: expected a free link fh0 to fh255, found none; run `python -m tests.support.hosts down`"
        )

    def _claim(self, number: int) -> bool:
        peer = ["peer", "name", "uplink", "netns", str(self.pid)]
        try:
            tool.run(["ip", "link", "add", f"fh{number}", "type", "veth", *peer])
        except HostError as error:
            if "File exists" not in str(error):
                raise
            return False
        return True

    @staticmethod
    def launcher(number: int) -> str:
        """The address of this machine as the hosts see it."""
        return f"10.77.{number}.254"

    def links(self, batch: str) -> None:
        """Runs lines of ``ip -batch`` on the switch's side."""
        tool.network(self.pid, ["ip", "-batch", "-"], batch)

    def close(self) -> None:
        """Ends everything in the rack and leaves nothing of it."""
        kill(self._process, _TIMEOUT_S)
        _forget(self.folder)


def sweep() -> List[Path]:
    """Removes what sessions left that are gone, and returns their folders."""
    left = list(leftovers())
    for folder in left:
        _forget(folder)
    return left


def leftovers() -> Iterator[Path]:
    """Folders of sessions that no longer run."""
    for folder in sorted(Path(_RECORDS).iterdir()):
        named = re.match(_PREFIX + r"(\d+)-(\d+)-", folder.name)
        if named and not Identity(int(named[1]), int(named[2])).alive():
            yield folder


def _forget(folder: Path) -> None:
    """Every step is right, too, where the kernel or an earlier try was there first."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        pid, started = (folder / "holder").read_text().split()
        Identity(int(pid), int(started)).end()
    with contextlib.suppress(FileNotFoundError, HostError):
        tool.run(["ip", "link", "delete", (folder / "link").read_text()])
    shutil.rmtree(str(folder), ignore_errors=True)
