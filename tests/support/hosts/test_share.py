"""A host may have a part of a processor only, and has all of it again afterwards."""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Callable, List

import pytest

from tests.support.hosts import FakeHosts, HostError, share
from tests.support.waiting import PATIENCE_S

_SPIN = """
import time
end, started = time.monotonic() + 1.5, time.process_time()
while time.monotonic() < end:
    pass
print(time.process_time() - started)
"""


def _spun_s(hosts: FakeHosts, index: int) -> float:
    """Seconds of a processor that a process of the host gets in 1.5 s."""
    argv = hosts.ssh(hosts[index], sys.executable, "-c", shlex.quote(_SPIN))
    return float(subprocess.run(argv, stdout=subprocess.PIPE, check=True, timeout=PATIENCE_S).stdout)


def _groups() -> List[Path]:
    return list(share.find(Path("/proc/mounts").read_text()).folder.glob(f"fake-hosts-{os.getpid()}-*"))


def test_what_runs_on_a_host_gets_its_share_of_a_processor_until_the_end_of_the_block(
    fake_hosts: Callable[..., FakeHosts],
) -> None:
    hosts = fake_hosts(2)
    with share.share(hosts, 0.03):
        limited_s = _spun_s(hosts, 0)
        assert limited_s < 0.15
        assert len(_groups()) == 2
    assert _spun_s(hosts, 0) > 2 * limited_s  # even where all else of this machine computes too
    assert _groups() == []


def test_hosts_that_are_gone_leave_no_group(fake_hosts: Callable[..., FakeHosts]) -> None:
    hosts = fake_hosts(1)
    with share.share(hosts, 0.5):
        hosts.close()
    assert _groups() == []


def test_a_killed_session_leaves_its_groups_to_the_next(fake_hosts: Callable[..., FakeHosts]) -> None:
    left = share.find(Path("/proc/mounts").read_text()).folder / "fake-hosts-99999999-1"
    left.mkdir()
    with share.share(fake_hosts(1), 0.5):
        assert not left.exists()


def test_a_block_that_fails_leaves_no_group(fake_hosts: Callable[..., FakeHosts]) -> None:
    with pytest.raises(KeyError), share.share(fake_hosts(1), 0.5):
        raise KeyError
    assert _groups() == []


@pytest.mark.parametrize(
    ("mounts", "folder", "unified"),
    [
        ("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", "/sys/fs/cgroup", True),
        ("c /cg/unified cgroup2 rw 0 0\nc /cg/cpu cgroup rw,cpu,cpuacct 0 0\n", "/cg/cpu", False),
        ("c /cg/cpuset cgroup rw,cpuset 0 0\nc /cg/unified cgroup2 rw 0 0\n", "/cg/unified", True),
    ],
)
def test_both_versions_of_control_groups_are_found(mounts: str, folder: str, unified: bool) -> None:
    assert share.find(mounts) == (Path(folder), unified)


def test_a_quota_is_written_as_each_version_has_it(tmp_path: Path) -> None:
    assert (share.Root(tmp_path, unified=True).made("two", 0.1) / "cpu.max").read_text() == "10000 100000"
    assert (share.Root(tmp_path, unified=False).made("one", 0.1) / "cpu.cfs_quota_us").read_text() == "10000"


def test_a_machine_without_them_is_told_so() -> None:
    with pytest.raises(HostError, match="lacks: a control group for processors"):
        share.find("proc /proc proc rw 0 0\n")
