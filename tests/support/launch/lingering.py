"""Fake hosts whose user lingers: the user manager of a real systemd starts at boot what the user has enabled.

A fake host boots without systemd as its first process. So the test starts the user manager, as systemd would have. The
manager has a control group of its own, by which nothing of it is left on this machine.
"""

import contextlib
import os
from pathlib import Path
from typing import Iterator, Sequence

import pytest

from tests.support.hosts import Host, needs

_GROUPS = Path("/sys/fs/cgroup")
_LINGER = "mkdir -p /var/lib/systemd/linger && touch /var/lib/systemd/linger/root"
# A machine has the tree of control groups of version 2, that of version 1 by the name of systemd, or both.
_MANAGER = """
set -e
mkdir -p /run/systemd/system /run/user/0
mount -t sysfs sysfs /sys
if grep -q :name=systemd: /proc/self/cgroup; then
    mount -t tmpfs cgroup /sys/fs/cgroup
    mkdir /sys/fs/cgroup/unified /sys/fs/cgroup/systemd
    mount -t cgroup -o none,name=systemd systemd /sys/fs/cgroup/systemd
    mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified
else
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
fi
for tree in /sys/fs/cgroup /sys/fs/cgroup/systemd /sys/fs/cgroup/unified; do
    if [ -e "$tree/cgroup.procs" ]; then
        mkdir -p "$tree/$1"
        echo $$ >"$tree/$1/cgroup.procs"
    fi
done
XDG_RUNTIME_DIR=/run/user/0 setsid /lib/systemd/systemd --user >/var/log/user-manager.log 2>&1 &
for _ in $(seq 100); do
    [ ! -e /run/user/0/systemd/private ] || exit 0
    sleep 0.1
done
exit 1
"""


class Lingering:
    """Hosts on which root lingers."""

    def __init__(self, hosts: Sequence[Host]):
        for host in hosts:
            _must(host, _LINGER)
            self._start(host)

    def power_cycle(self, host: Host) -> None:
        """Cut the power of a host, and boot it, with its user manager."""
        host.power_cut()
        host.power_on()
        self._start(host)

    @staticmethod
    def _start(host: Host) -> None:
        _must(host, _MANAGER, _group(host))

    @staticmethod
    def forget(hosts: Sequence[Host]) -> None:
        """Remove the control groups of hosts that are down."""
        for host in hosts:
            host.power_cut()
            for tree in (_GROUPS, _GROUPS / "systemd", _GROUPS / "unified"):
                for folder, _, _ in os.walk(str(tree / _group(host)), topdown=False):
                    os.rmdir(folder)


@contextlib.contextmanager
def lingering(hosts: Sequence[Host]) -> Iterator[Lingering]:
    """Have root linger on hosts until the end of the block, which switches them off; skip without systemd."""
    missing = needs.lacking("systemd")
    if missing:
        pytest.skip(f"needs systemd: this machine lacks {'; '.join(missing)}")
    try:
        yield Lingering(hosts)
    finally:
        Lingering.forget(hosts)


def _must(host: Host, script: str, *arguments: str) -> None:
    done = host.run(["sh", "-c", script, "sh", *arguments])
    assert done.returncode == 0, done.stderr


def _group(host: Host) -> str:
    return f"launch-test-{os.getpid()}-{host.name}"
