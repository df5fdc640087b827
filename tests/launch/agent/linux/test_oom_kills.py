"""Who was killed for want of memory is told by the kernel's counts; in one test by a real kernel, where it lets us."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Iterator

import pytest

from launch.agent.linux.kernel_log import RECENT_S, MemoryKills, counters, names_process
from tests.support.waiting import PATIENCE_S, eventually

V1 = Path("/sys/fs/cgroup/memory")


def write(root: Path, path: str, text: str) -> Path:
    """A file below a root of our own."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """A root with the counts of a control group of version 2, all 3."""
    write(tmp_path, "proc/self/cgroup", "0::/job/7\n")
    write(tmp_path, "proc/vmstat", "pgfault 9\noom_kill 3\n")
    write(tmp_path, "sys/fs/cgroup/job/7/memory.events", "oom 0\noom_kill 3\n")
    return tmp_path


def count(root: Path, kills: int) -> None:
    """The kernel has killed so many, in our group."""
    write(root, "sys/fs/cgroup/job/7/memory.events", f"oom 0\noom_kill {kills}\n")


def test_a_kill_that_was_counted_since_is_told_once(kernel: Path) -> None:
    kills = MemoryKills(kernel)
    assert not kills.took(42, 1.0)
    count(kernel, 4)
    assert kills.took(42, 2.0)
    assert not kills.took(43, 2.1)


def test_two_kills_are_two_tasks(kernel: Path) -> None:
    kills = MemoryKills(kernel)
    count(kernel, 5)
    assert [kills.took(pid, 1.0) for pid in (1, 2, 3)] == [True, True, False]


def test_a_kill_whose_process_is_known_is_not_told_of_another_process(kernel: Path) -> None:
    kills = MemoryKills(kernel)
    count(kernel, 5)
    kills.explained(2, 1.0)
    assert not kills.took(42, 1.0)


def test_a_kill_of_long_ago_says_nothing_of_a_process_that_ends_now(kernel: Path) -> None:
    kills = MemoryKills(kernel)
    count(kernel, 4)
    kills.look(1.0)
    kills.look(1.1 + RECENT_S)
    assert not kills.took(42, 1.2 + RECENT_S)


def test_a_group_of_version_1_counts_too(tmp_path: Path) -> None:
    write(tmp_path, "proc/self/cgroup", "5:cpu:/x\n4:memory:/a\n0::/\n")
    found = write(tmp_path, "sys/fs/cgroup/memory/a/memory.oom_control", "under_oom 0\noom_kill 0\n")
    assert counters(tmp_path) == [found]


def test_where_nothing_counts_the_kernel_s_messages_are_asked(tmp_path: Path) -> None:
    said = write(tmp_path, "kmsg", "Memory cgroup out of memory: Killed process 421 (python) total-vm:9kB\n")
    kills = MemoryKills(tmp_path, said)
    assert kills.took(421, 1.0) and not kills.took(42, 1.0)


def test_messages_that_cannot_be_read_name_nobody(tmp_path: Path) -> None:
    assert not names_process(tmp_path / "none", 42)


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A real control group of 32 MiB, where this machine lets us make one."""
    group = V1 / f"launch_test_{os.getpid()}"
    try:
        group.mkdir()
        for limit in ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"):  # the second: with what is swapped out
            (group / limit).write_text(str(32 << 20))
        (group / "memory.oom_control").read_text().index("oom_kill ")
    except (OSError, ValueError) as error:
        pytest.skip(f"needs a control group of its own: root, cgroup v1 and oom_kill ({error})")
    yield group
    group.rmdir()


def test_a_process_that_a_real_kernel_kills_for_want_of_memory_is_told(small_group: Path) -> None:
    if not counters(Path("/")):
        pytest.skip("needs a control group of its own: this kernel does not count what it kills for want of memory")
    kills = MemoryKills()
    greedy = subprocess.Popen([sys.executable, "-c", "input(); x = bytearray(1 << 30)"], stdin=subprocess.PIPE)
    (small_group / "cgroup.procs").write_text(str(greedy.pid))
    greedy.communicate(b"\n", timeout=PATIENCE_S)
    assert greedy.returncode == -9
    eventually("the kill", lambda: kills.took(greedy.pid, 0.0))
