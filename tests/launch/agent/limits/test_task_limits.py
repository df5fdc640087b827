"""Tasks with limits: real processes, on a real kernel's control groups where this machine has some."""

import os
import sys
from pathlib import Path
from typing import Iterator, TypeVar

import pytest

from cluster.protocol.settings import GIB, Limits
from launch.agent.endings.exit_causes import ExitCause
from launch.agent.endings.exits import Excess
from launch.agent.limits import control_groups, task_limits
from launch.agent.limits.enforcement import Terms
from launch.agent.limits.task_limits import LOOK_S
from launch.agent.linux.processes import OOM_RAISE
from launch.agent.protocol.messages import Exited
from tests.support.agent.bench import Bench
from tests.support.waiting import eventually

pytestmark = pytest.mark.not_fast

T = TypeVar("T")
REACHED = "memory limit of 0.0625 GiB reached"
SMALL = Limits(memory_gib=64 / 1024)
# A child takes the memory, as a task's own would; the parent only waits for it.
GREEDY = (sys.executable, "-c", "import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', "
          "'import time; x = bytearray(b\"x\") * (200 << 20); time.sleep(600)']) and 3)")  # fmt: skip


@pytest.fixture
def place() -> Iterator[control_groups.GroupPlace]:
    """Where this process can make control groups."""
    try:
        yield control_groups.find()
    except OSError as error:
        pytest.skip(f"needs a control group of its own: {error}")


def limited(limits: Limits, **fields: object) -> Terms:
    return Terms({"worker:0": limits}, **fields)  # type: ignore[arg-type]


def test_a_task_beyond_its_limit_is_killed_by_a_real_kernel_alone_and_its_group_is_removed(
    bench: Bench, place: control_groups.GroupPlace
) -> None:
    control_groups.write_place(bench.folder, place)
    bench.start(*GREEDY, terms=limited(SMALL, place=place))
    (group,) = (path for path in control_groups.left(bench.folder) if f".{os.getpid()}." in path.name)
    exited = bench.comes(Exited)
    assert exited.kind == "out-of-memory" and exited.retry
    assert str(exited.cause).startswith(REACHED)
    eventually("no group", lambda: _looked(bench, not group.exists()))


def test_without_a_group_the_agent_looks_and_kills_the_whole_task(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.start(*GREEDY, terms=limited(SMALL))
    attempt = bench.tasks.running["worker:0"]
    eventually("a child", lambda: _looked(bench, attempt.kin.pids))
    eventually("the kill", lambda: _looked(bench, attempt.excess_bytes))
    exited = bench.comes(Exited)
    assert (exited.kind, exited.exit_code) == ("out-of-memory", -9)
    assert str(exited.cause).startswith(f"{REACHED}: killed by the agent; ")


def _looked(bench: Bench, value: T) -> T:
    """Let the agent look; return a value of before."""
    bench.now += LOOK_S
    bench.tasks.poll(bench.now)
    return value


def test_memory_that_processes_share_does_not_kill_a_task(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.start("sh", "-c", "sleep 600 & wait", terms=limited(SMALL))
    attempt = bench.tasks.running["worker:0"]
    eventually("a child", lambda: _looked(bench, attempt.kin.pids))
    monkeypatch.setattr(task_limits, "memory_at_most", lambda pids: GIB)
    _looked(bench, None)
    assert attempt.excess_bytes == 0
    monkeypatch.setattr(task_limits, "memory_exactly", lambda pids: GIB)
    _looked(bench, None)
    assert attempt.excess_bytes == GIB


def test_a_task_and_its_children_have_their_limits_and_are_still_the_kernels_first_choice(bench: Bench) -> None:
    processor = max(os.sched_getaffinity(0))
    limits = Limits(processors=1, nofile=123, nice=7)
    bench.sh(
        "sh -c 'ulimit -n; ulimit -Hn; nice; grep Cpus_allowed_list /proc/self/status; cat /proc/self/oom_score_adj';"
        "exit 1",
        terms=limited(limits, processors={"worker:0": (processor,)}),
    )
    bench.comes(Exited)
    ours = int(Path("/proc/self/oom_score_adj").read_text())
    assert bench.folder.log("worker:0", 0).read_text().split() == [
        "123", "123", "7", "Cpus_allowed_list:", str(processor), str(ours + OOM_RAISE),
    ]  # fmt: skip


def test_a_limit_that_was_refused_after_all_is_the_cause_and_the_program_does_not_run(bench: Bench) -> None:
    bench.sh("echo ran", terms=limited(Limits(numa_node=1023)))
    exited = bench.comes(Exited)
    assert exited.lines == ["cannot set the limits of this task: limits.numa_node: Invalid argument"]
    assert exited.exit_code == 1


def test_a_group_that_cannot_be_made_is_told_as_a_task_that_did_not_start(bench: Bench, tmp_path: Path) -> None:
    nowhere = control_groups.GroupPlace(tmp_path / "nowhere", control_groups.V2)
    bench.start("true", terms=limited(SMALL, place=nowhere))
    (exited,) = bench.events
    assert isinstance(exited, Exited) and exited.kind == "not-started"
    assert str(exited.cause).endswith(": No such file or directory") and "nowhere/launch." in str(exited.cause)


def test_a_task_that_is_killed_itself_has_the_limit_as_its_cause_and_a_child_s_is_told_beside_the_task_s_own() -> None:
    excess = Excess(REACHED, "killed by the kernel; raise it", 1)
    own = ExitCause("exit", "exit code 3; its last line: worker gone", retry=True)
    assert excess.ending(-9, own) == ExitCause("out-of-memory", f"{REACHED}: killed by the kernel; raise it", REACHED)
    told = excess.ending(3, own)
    assert (told.kind, told.cause) == (
        "out-of-memory", f"{REACHED} by a child that was killed; then exit code 3; its last line: worker gone",
    )  # fmt: skip
