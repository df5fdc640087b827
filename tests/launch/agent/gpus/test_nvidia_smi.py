"""The driver's own tool lists the GPUs of this host."""

from pathlib import Path

import pytest

from launch.agent.gpus.nvidia_smi import list_gpus

pytestmark = pytest.mark.not_fast  # starts programs, by what it tests


def test_gpus_are_listed_with_the_drivers_own_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(
        "#!/bin/sh\necho 'GPU 0: Tesla (UUID: GPU-1)'\necho 'GPU 1: Tesla (UUID: GPU-2)'\necho '  MIG 1g'\n"
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert list_gpus() == ["GPU-1", "GPU-2"]


def test_without_a_driver_there_are_no_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert list_gpus() == []
