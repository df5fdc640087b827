"""Limits that a real process sets for itself, in a child of this one."""

import os
import resource

import pytest

from cluster.protocol.settings import Limits
from launch.agent.limits import task_limits
from launch.agent.limits.enforcement import Enforcement, refusal_of

pytestmark = pytest.mark.not_fast


def test_limits_that_this_user_may_have_are_not_refused_and_leave_this_process_alone() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE), os.sched_getaffinity(0)
    assert refusal_of(Enforcement(Limits(nofile=64, nice=19, numa_node=0), (min(before[1]),))) is None
    assert (resource.getrlimit(resource.RLIMIT_NOFILE), os.sched_getaffinity(0)) == before


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        (Limits(nofile=1 << 62), "limits.nofile: expected at most "),
        (Limits(numa_node=1023), "limits.numa_node: Invalid argument"),
    ],
)
def test_the_kernel_s_refusal_is_said_with_the_key(limits: Limits, text: str) -> None:
    assert str(refusal_of(Enforcement(limits))).startswith(text)


def test_memory_that_processes_share_counts_once() -> None:
    ours = bytearray(b"x") * (64 << 20)
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(source, 1)
        os._exit(len(ours) & 0)
    try:
        pids = [os.getpid(), child]
        rough, exact = task_limits.memory_at_most(pids), task_limits.memory_exactly(pids)
        alone = task_limits.memory_at_most(pids[:1])
        assert rough >= 2 * len(ours)
        assert alone <= exact + (8 << 20) and exact < alone + len(ours) // 2
    finally:
        os.write(sink, b"x")
        os.waitpid(child, 0)
        os.close(source)
        os.close(sink)
