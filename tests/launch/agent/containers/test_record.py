"""The containers of a run on a host are found again by their names on record, also without a process of them."""

from pathlib import Path

import pytest

from launch.agent import leftovers
from launch.agent.state import process_records
from launch.agent.state.run_folder import RunFolder
from tests.support.containers.fake import FakeRuntime

pytestmark = pytest.mark.not_fast  # starts the stand-in for docker
GONE = str(2**22 + 1)  # the pid of a container that has ended


@pytest.fixture
def earlier(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "w", "r-20260101-000000", "h")
    folder.create()
    return folder


def record(folder: RunFolder, runtime: FakeRuntime, *names: str) -> None:
    folder.write(process_records.CONTAINERS, {"program": str(runtime.program), "names": list(names)})


def test_the_next_run_of_a_name_removes_containers_that_an_earlier_one_left(
    earlier: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker = FakeRuntime(tmp_path / "bin", "docker", monkeypatch)
    for name in ("mine", "foreign"):
        (tmp_path / "bin" / "state" / name).write_text(GONE)
    record(earlier, docker, "mine", "long-gone")
    assert leftovers.look(earlier).containers == ["mine"]
    leftovers.end_earlier_runs(RunFolder(tmp_path / "w", "r-20260102-000000", "h"), "r", "r.yaml")
    assert docker.names == ["foreign"] and process_records.container_names(earlier) == []


def test_a_runtime_that_does_not_answer_is_no_proof(
    earlier: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker = FakeRuntime(tmp_path / "bin", "docker", monkeypatch)
    record(earlier, docker, "mine")
    docker.breaks()
    leftovers.end(earlier)
    assert leftovers.look(earlier).containers == ["mine (cannot reach the daemon)"]
    docker.program.unlink()
    assert "cannot start" in leftovers.look(earlier).containers[0]


def test_a_record_in_pieces_names_nothing(earlier: RunFolder) -> None:
    (earlier.own / process_records.CONTAINERS).write_text('{"program"')
    assert process_records.container_names(earlier) == leftovers.look(earlier).containers == []
