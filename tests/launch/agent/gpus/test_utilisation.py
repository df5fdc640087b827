"""How busy GPUs are: what a driver answers, or does not, here a script in its place."""

from pathlib import Path
from typing import Callable, Dict, Iterator

import pytest

from launch.agent.gpus.watching import MIB, PATIENCE_S, GpuUse, Use, read_use
from tests.support.waiting import eventually

pytestmark = pytest.mark.not_fast  # starts programs, by what it tests

ANSWER = "0, 87, 14541\n1, [N/A], 0\n"
USED = {0: Use(87, 14541 * MIB), 1: Use(None, 0)}
Driver = Callable[[str], Path]


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Driver:
    """Puts a script in the place of nvidia-smi."""

    def put(script: str) -> Path:
        path = tmp_path / "nvidia-smi"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        return path

    return put


@pytest.fixture
def use() -> Iterator[GpuUse]:
    """Asks until the end of the test."""
    made = GpuUse()
    yield made
    if made._question._asked is not None and made._question._asked.stdout is not None:
        made._question._asked.kill()
        made._question._asked.wait(60)
        made._question._asked.stdout.close()


def eventually_told(use: GpuUse) -> Dict[int, Use]:
    found: Dict[int, Use] = eventually("an answer", lambda: use.look(0.0))
    return found


def test_the_use_of_every_gpu_is_told_at_a_later_look(driver: Driver, use: GpuUse) -> None:
    driver(f"printf '{ANSWER}'".replace("\n", "\\n"))
    assert use.look(0.0) == {}
    assert eventually_told(use) == USED


def test_the_driver_is_asked_for_percent_and_memory_by_index(driver: Driver, use: GpuUse, tmp_path: Path) -> None:
    driver(f"echo \"$*\" >> {tmp_path}/asked; echo '0, 1, 2'")
    eventually_told(use)
    asked = (tmp_path / "asked").read_text().splitlines()[0]  # it may be asked again already
    assert asked == "--query-gpu=index,utilization.gpu,memory.used --format=csv,noheader,nounits"


def test_a_host_without_a_driver_has_no_gpus(use: GpuUse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [use.look(float(second)) for second in range(3)] == [{}, {}, {}]


def test_a_driver_that_hangs_is_not_waited_for_and_its_last_answer_forgotten_in_time(
    driver: Driver, use: GpuUse
) -> None:
    script = driver("echo '0, 1, 2'")
    eventually_told(use)
    eventually(
        "the end of what was asked",
        lambda: use._question._asked is not None and use._question._asked.poll() is not None,
    )
    script.write_text("#!/bin/sh\nexec sleep 1000\n")
    assert use.look(1.0)
    assert use.look(2.0) == {0: Use(1, 2 * MIB)}
    assert use.look(1.0 + PATIENCE_S + 0.1) == {}
    assert use._question._asked is not None and use._question._asked.wait(60) == -9


def test_what_is_no_answer_is_passed_over() -> None:
    assert read_use("NVIDIA-SMI has failed\n\n0, 5\n") == {}
    assert read_use(ANSWER) == USED
