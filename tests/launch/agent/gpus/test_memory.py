"""Whose memory is on the GPUs, as the driver's tool tells it."""

from pathlib import Path

import pytest

from launch.agent.gpus import memory

pytestmark = pytest.mark.not_fast  # starts programs, by what it tests

NVIDIA_SMI = """#!/bin/sh
case "$1" in
-L) echo "GPU 0: NVIDIA A100 (UUID: GPU-a)"; echo "GPU 1: NVIDIA A100 (UUID: GPU-b)";;
*)  echo "GPU-b, 42, 1536"; echo "GPU-a, 43, [N/A]"; echo "GPU-a, 99, 7"; echo "GPU-z, 42, 3"; echo "No devices";;
esac
"""


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host whose nvidia-smi is a script of ours."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text(NVIDIA_SMI)
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


def test_memory_is_told_with_gpu_pid_and_amount_of_the_processes_that_are_asked_for(driver: None) -> None:
    assert memory.held_by([42, 43]) == [
        {"gpu": 1, "pid": 42, "mib": 1536},
        {"gpu": 0, "pid": 43, "mib": None},
        {"gpu": "GPU-z", "pid": 42, "mib": 3},
    ]


def test_of_no_processes_nothing_is_asked(driver: None, tmp_path: Path) -> None:
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nsleep 60")
    assert memory.held_by([]) == []


def test_a_host_without_a_driver_has_no_memory_to_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert memory.held_by([42]) == []
