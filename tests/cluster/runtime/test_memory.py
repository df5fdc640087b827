"""The memory that is left is that of the host, or of the tightest control group."""

from pathlib import Path

import pytest

from cluster.runtime import process

KIB = 1024


@pytest.fixture(autouse=True)
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable:    5000 kB\n")
    (tmp_path / "own").write_text("1:name=systemd:/old\n0::/run/task\n")
    (tmp_path / "run" / "task").mkdir(parents=True)
    for name, path in (("_HOST", "meminfo"), ("_OWN_GROUP", "own"), ("_GROUPS", "")):
        monkeypatch.setattr(process, name, tmp_path / path)


def limit(group: Path, most: str, anon: int, shmem: int = 0) -> None:
    (group / "memory.max").write_text(f"{most}\n")
    (group / "memory.stat").write_text(f"anon {anon}\nfile 999999\nanon_thp 7\nshmem {shmem}\n")


def test_without_groups_it_is_what_the_host_has(tmp_path: Path) -> None:
    assert process.memory_left() == 5000 * KIB
    (tmp_path / "own").unlink()
    assert process.memory_left() == 5000 * KIB


def test_a_group_leaves_its_limit_but_for_what_cannot_be_given_back(tmp_path: Path) -> None:
    limit(tmp_path / "run" / "task", "max", 100)
    assert process.memory_left() == 5000 * KIB
    limit(tmp_path / "run" / "task", "900000", 100, 50)
    assert process.memory_left() == 900000 - 150
    limit(tmp_path / "run", "3000", 2000)
    assert process.memory_left() == 1000
    limit(tmp_path / "run", "3000", 4000)
    assert process.memory_left() == 0
