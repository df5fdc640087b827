"""The ring is compared with where Horovod is, and what is missing is said; its workers find each other."""

import json
import socket
import sys
from pathlib import Path

import pytest

from tests.benchmarks import ring
from tests.benchmarks.speed import __main__, horovod
from tests.benchmarks.speed.cases import CASES, WAYS


def test_without_horovod_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(horovod, "PYTHON", str(tmp_path / "bin/python"))
    assert "run `make ring`" in str(horovod.missing())
    monkeypatch.setattr(horovod, "PYTHON", sys.executable)  # which has no Horovod
    assert "run `make ring`" in str(horovod.missing())


def test_an_environment_that_has_it_lacks_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 0\n")
    python.chmod(0o755)
    monkeypatch.setattr(horovod, "PYTHON", str(python))
    assert horovod.missing() is None


def test_a_ring_that_cannot_be_had_is_skipped_with_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(horovod, "PYTHON", str(tmp_path / "none"))
    monkeypatch.setattr(__main__, "compare", lambda case, ways, *_: print(case.name, *(way.name for way in ways)))
    results = str(tmp_path / "results.json")
    monkeypatch.setattr(
        sys, "argv", ["speed", "run", "--case", "coloc*", "--way", "ours", "ring", "--results", results]
    )
    assert __main__.main() == 0
    first, *others = capsys.readouterr().out.split("\n")
    assert first.startswith("ring: skipped: expected Horovod in ")
    assert others[:2] == ["colocated ours", "colocated-odd ours"]


def test_a_ring_is_compared_on_the_workers_hosts_only() -> None:
    assert [case.name for case in CASES.values() if case.allows(WAYS["ring"])] == ["colocated", "colocated-odd"]


def test_a_worker_has_the_place_that_horovods_own_launcher_would_give_it() -> None:
    found = ring.place(1, ["10.0.0.1", "10.0.0.2"], 2222)
    assert (found["HOROVOD_RANK"], found["HOROVOD_SIZE"], found["HOROVOD_LOCAL_RANK"]) == ("1", "2", "0")
    assert (found["HOROVOD_GLOO_RENDEZVOUS_ADDR"], found["HOROVOD_GLOO_RENDEZVOUS_PORT"]) == ("10.0.0.1", "2222")
    assert all(isinstance(value, str) for value in found.values()), json.dumps(found)


def test_a_worker_waits_until_the_first_one_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as first:
        first.bind(("127.0.0.1", 0))
        monkeypatch.setattr(ring, "PATIENCE_S", 0.2)
        with pytest.raises(ConnectionRefusedError):
            ring.wait_for(*first.getsockname())
        first.listen(1)
        ring.wait_for(*first.getsockname())
