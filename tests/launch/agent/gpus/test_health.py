"""What a driver reports of the health of its GPUs; a script stands in for nvidia-smi, in the words of real ones."""

import os
from pathlib import Path
from typing import Callable

import pytest

from launch.agent import facts
from launch.agent.gpus import nvidia_smi
from launch.agent.gpus.nvidia_smi import ASK_LESS, CardLost, Health, card_of, health_of_all, read_health, refuse_lost

Driver = Callable[[str], None]


@pytest.mark.parametrize(
    ("line", "health"),
    [
        ("GPU-a, 0, Not Active", Health(0)),
        ("GPU-a, 2, Not Active", Health(2)),
        ("GPU-a, [N/A], Active", Health(None, True)),
        ("GPU-a, 1", Health(1)),
    ],
)
def test_memory_errors_and_reduced_clocks_are_read(line: str, health: Health) -> None:
    assert read_health(line + "\n") == {"GPU-a": health}


def test_an_answer_that_is_none_has_no_health() -> None:
    assert read_health("No devices were found\n") == {} == read_health("")


@pytest.mark.parametrize("address", ["00000000:3B:00.0", "0000:3b:00", "0000:3B:00.0"])
def test_a_card_has_one_name_however_its_address_is_written(address: str) -> None:
    assert card_of(address) == "0000:3b:00"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("Unable to determine the device handle for GPU 0000:3B:00.0: Unknown Error", "Unknown Error"),
        ("Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error\n", "Unknown Error"),
        ("Unable to determine the device handle for GPU1: 0000:3B:00.0: Unknown Error\nGPU 0: A", "Unknown Error"),
        (
            "GPU 0: Tesla V100 (UUID: GPU-a)\nUnable to determine the device handle for GPU 0000:3B:00.0: "
            "GPU is lost.  Reboot the system to recover this GPU\n",
            "GPU is lost. Reboot the system to recover this GPU",
        ),
    ],
)
def test_a_card_that_the_driver_cannot_reach_is_named_with_the_driver_s_reason(answer: str, why: str) -> None:
    with pytest.raises(CardLost) as caught:
        refuse_lost(answer)
    assert (caught.value.card, caught.value.why) == ("0000:3b:00", why)
    assert str(caught.value).startswith(f"nvidia-smi: the driver has lost the GPU at 0000:3b:00 ({why}); ")


def test_an_answer_without_a_lost_card_is_not_refused() -> None:
    refuse_lost("GPU 0: Tesla V100 (UUID: GPU-a)\n")


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Driver:
    """Write a script in the place of nvidia-smi."""

    def write(script: str) -> None:
        (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "nvidia-smi").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    return write


@pytest.mark.not_fast
def test_a_driver_that_does_not_know_a_field_is_asked_for_fewer(driver: Driver) -> None:
    refusal = 'Field "clocks_throttle_reasons.hw_slowdown" is not a valid field to query.'
    driver(f"""case "$1" in '{ASK_LESS[1]}') echo 'GPU-a, 3';; *) echo '{refusal}'; exit 2;; esac""")
    assert health_of_all() == {"GPU-a": Health(3)}


@pytest.mark.not_fast
def test_a_lost_card_is_no_host_without_gpus_and_holds_no_memory(driver: Driver) -> None:
    driver("echo 'Unable to determine the device handle for GPU 0000:3B:00.0: Unknown Error' >&2; exit 255")
    for ask in (nvidia_smi.list_gpus, facts.driver_and_gpus):
        with pytest.raises(CardLost, match="the driver has lost the GPU at 0000:3b:00"):
            ask()
    assert nvidia_smi.memory_of([42]) == []
