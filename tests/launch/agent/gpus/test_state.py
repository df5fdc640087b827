"""What the GPUs are doing, from a driver that tells in its own words."""

import os
from pathlib import Path

import pytest

from launch.agent import facts
from launch.agent.gpus import nvidia_smi
from launch.agent.gpus.assignment import Bookings
from launch.agent.gpus.nvidia_smi import DriverHangs
from launch.agent.wire.host_facts import Gpu, Gpus

pytestmark = pytest.mark.not_fast  # starts programs, by what it tests

DRIVER = """#!/bin/sh
case "$1" in
-L) printf 'GPU 0: Tesla V100 (UUID: GPU-a)\\nGPU 1: Tesla V100 (UUID: GPU-b)\\n' ;;
--query-gpu=*) printf '535.1, GPU-a, Tesla V100\\n535.1, GPU-b, Tesla V100\\n' ;;
*) printf 'GPU-b, {pid}, 9000\\n' ;;
esac
"""
USERS = """#!/bin/sh
case "$1" in
-L) echo "GPU 0: NVIDIA A100 (UUID: GPU-a)"; echo "GPU 1: NVIDIA A100 (UUID: GPU-b)";;
*)  echo "GPU-b, 42, 1536"; echo "GPU-a, 43, [N/A]"; echo "GPU-a, 99, 7"; echo "GPU-z, 42, 3"; echo "No devices";;
esac
"""


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An nvidia-smi with two GPUs, the second in use by this process."""
    (tmp_path / "nvidia-smi").write_text(DRIVER.format(pid=os.getpid()))
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


def test_a_host_without_a_driver_has_no_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert facts.driver_and_gpus() == Gpus(None, [])


def test_every_gpu_is_told_with_the_processes_that_use_it(driver: None) -> None:
    found = facts.driver_and_gpus()
    assert found.driver == "535.1"
    free, used = found.gpus
    assert free == Gpu("GPU-a", "Tesla V100", None, [])
    (process,) = used.processes
    assert process.startswith(f"pid {os.getpid()} (") and process.endswith("), 9000 MiB")


def test_in_a_step_of_slurm_only_its_gpus_are_the_hosts(driver: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_STEP_ID", "0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert [gpu.uuid for gpu in facts.driver_and_gpus().gpus] == ["GPU-b"]


def test_a_gpu_that_a_run_has_booked_is_told_as_such(driver: None) -> None:
    bookings = Bookings(["GPU-a"], "r-1 (agent pid 7)")
    bookings.book({"worker:0": [0]})
    try:
        booked, free = facts.driver_and_gpus().gpus
    finally:
        bookings.release()
    assert booked.booked == f"pid {os.getpid()}, another run"  # nobody answers for it in this test
    assert free.booked is None


@pytest.fixture
def users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An nvidia-smi with two GPUs, and memory held on them and on another."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text(USERS)
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


def test_memory_is_told_with_gpu_pid_and_amount_of_the_processes_that_are_asked_for(users: None) -> None:
    assert nvidia_smi.memory_of([42, 43]) == [
        {"gpu": 1, "pid": 42, "mib": 1536},
        {"gpu": 0, "pid": 43, "mib": None},
        {"gpu": "GPU-z", "pid": 42, "mib": 3},
    ]


def test_of_no_processes_nothing_is_asked(users: None, tmp_path: Path) -> None:
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nsleep 60")
    assert nvidia_smi.memory_of([]) == []


def test_a_host_without_a_driver_has_no_memory_to_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert nvidia_smi.memory_of([42]) == []


@pytest.fixture
def hanging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An nvidia-smi that never answers."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\nexec sleep 1000\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(nvidia_smi, "ANSWER_S", 0.3)


def test_a_driver_that_hangs_is_no_host_without_gpus(hanging: None) -> None:
    with pytest.raises(DriverHangs, match="nvidia-smi: expected an answer within 0 s, found none"):
        facts.driver_and_gpus()
    with pytest.raises(DriverHangs):
        nvidia_smi.list_gpus()


def test_memory_may_be_held_by_every_process_while_the_driver_hangs(hanging: None) -> None:
    assert nvidia_smi.memory_of([43, 42]) == [{"gpu": nvidia_smi.UNKNOWN, "pid": pid, "mib": None} for pid in (42, 43)]
