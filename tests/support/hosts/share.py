"""A part of a processor for each fake host: what runs there waits as it would on a machine that is overloaded.

The kernel does it: a control group for each host, with a quota of processor time in every ``PERIOD_S``, as containers
have one. A host's first process and sshd are put into it, and what they start is born in it. What a test starts from
outside (``Host.run``, ``Host.popen``) is not.
"""

import contextlib
import os
import time
from pathlib import Path
from typing import Iterator, NamedTuple

from tests.support.hosts.boot import wait
from tests.support.hosts.errors import MissingError
from tests.support.hosts.fleet import FakeHosts
from tests.support.waiting import PATIENCE_S

PERIOD_S = 0.1
_PREFIX = "fake-hosts-"
_V1_PERIOD, _V1_QUOTA = "cpu.cfs_period_us", "cpu.cfs_quota_us"
_MOUNTS = Path("/proc/mounts")
_LACKS = "a control group for processors (use a machine, or a privileged container, with a writable cgroup)"


class Root(NamedTuple):
    """Where control groups of processors are made; ``unified`` is version 2 of them."""

    folder: Path
    unified: bool

    def made(self, name: str, cores: float) -> Path:
        """Make a group with a quota of ``cores`` processors. Raises MissingError where the kernel refuses."""
        period, quota = str(round(PERIOD_S * 1e6)), str(round(cores * PERIOD_S * 1e6))
        limits = {"cpu.max": f"{quota} {period}"} if self.unified else {_V1_PERIOD: period, _V1_QUOTA: quota}
        group = self.folder / name
        try:
            if self.unified:
                (self.folder / "cgroup.subtree_control").write_text("+cpu")
            group.mkdir()
            for file, limit in limits.items():
                (group / file).write_text(limit)
        except OSError as error:
            raise MissingError([f"{_LACKS}: {error}"]) from error
        return group

    def remove(self, group: Path) -> None:
        """Move what is in a group to the root, and remove the group."""
        wait(lambda: self._emptied(group), time.monotonic() + PATIENCE_S, lambda: f"{group}: expected it to be empty")

    def _emptied(self, group: Path) -> bool:
        for pid in (group / "cgroup.procs").read_text().split():
            _move(int(pid), self.folder)
        with contextlib.suppress(OSError):  # something has just been born in it
            group.rmdir()
        return not group.exists()


@contextlib.contextmanager
def share(hosts: FakeHosts, cores: float) -> Iterator[None]:
    """Give each host ``cores`` of a processor, 0.1 for a tenth of one, until the end of the block.

    Raises:
      MissingError: this machine has no control groups that we may use.
    """
    root, groups = find(_MOUNTS.read_text()), []
    _sweep(root.folder)
    try:
        for host in hosts:
            groups.append(root.made(f"{_PREFIX}{os.getpid()}-{host.init()}", cores))
            for pid in _inhabitants(host.init()):
                _move(pid, groups[-1])
        yield
    finally:
        for group in groups:
            root.remove(group)


def find(mounts: str) -> Root:
    """Find the place in a text as /proc/mounts. Version 1 takes processors from version 2, where both are mounted.

    Raises:
      MissingError: there is none.
    """
    rows = [row.split()[1:4] for row in mounts.splitlines()]
    for folder, kind, options in rows:
        if kind == "cgroup" and "cpu" in options.split(","):
            return Root(Path(folder), unified=False)
    for folder, kind, _ in rows:
        if kind == "cgroup2":
            return Root(Path(folder), unified=True)
    raise MissingError([_LACKS])


def _inhabitants(init: int) -> Iterator[int]:
    """The processes of the host whose first one is ``init``, all as this machine numbers them."""
    namespace = os.readlink(f"/proc/{init}/ns/pid")
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            if os.readlink(f"{entry}/ns/pid") == namespace:
                yield int(entry.name)


def _move(pid: int, group: Path) -> None:
    with contextlib.suppress(ProcessLookupError):
        (group / "cgroup.procs").write_text(str(pid))


def _sweep(folder: Path) -> None:
    """Remove the groups of sessions that were killed."""
    for group in folder.glob(f"{_PREFIX}*"):
        if not Path("/proc", group.name[len(_PREFIX) :].split("-")[0]).exists():
            with contextlib.suppress(OSError):  # the kernel keeps one in which something runs
                group.rmdir()
