"""The report is a file beside the status: current while the run goes on, complete at its end."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List, Optional

import pytest

from launch.agent.service import publication
from launch.agent.service.publication import FILE, ReportFile, report
from launch.agent.state.run_folder import RunFolder
from tests.support.agent.histories import Replay, failed


class Folder(RunFolder):
    """A run's folder that remembers what was written."""

    def __init__(self, path: Path):
        super().__init__(path, "r-1", "a")
        self.written: List[Any] = []

    def read(self, name: str) -> Optional[Dict[str, Any]]:
        return self.written[-1][1] if self.written else None

    def note(self, name: str, values: Any, durable: bool = False) -> bool:
        self.written.append((name, values))
        return True


class FullFolder(Folder):
    """A folder on a disk that is full at first."""

    is_full = True

    def note(self, name: str, values: Any, durable: bool = False) -> bool:
        return not self.is_full and super().note(name, values, durable)


def test_a_status_that_a_full_disk_refused_is_written_once_it_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = [0.0]
    monkeypatch.setattr(publication, "now", lambda: moment[0])
    folder, hooks = FullFolder(tmp_path), SimpleNamespace(problem=None, look=lambda status, was_up: None)
    replicas: Any = SimpleNamespace(steps={})

    async def look() -> None:
        shown = publication.Publication(Replay().run, folder, replicas, hooks, durable=False)  # type: ignore[arg-type]
        for folder.is_full in (True, True, False, False):
            shown.look()
            moment[0] += 2.0

    asyncio.run(look())
    assert [name for name, _ in folder.written] == ["status.json"]


def test_a_report_has_the_incidents_their_count_and_the_words() -> None:
    replay = Replay(restart_max=0)
    replay.up()
    replay.at(5, failed("worker:1", code=3))
    told = report(replay.run.status(), 1000.0, 5.25)
    assert (told["state"], told["cause"], told["began"], told["seconds"]) == (
        "running",
        "worker:1@b: it broke",
        1e3,
        5.25,
    )
    assert (told["incident_count"], told["cause_incident"], told["incidents"][0]["host"]) == (1, 1, "b")
    assert told["words"] == ["1 incident: worker:1@b left with exit code 3, not back since"]


def test_a_run_without_incidents_has_a_report_too() -> None:
    told = report(Replay().run.status(), 0.0, 0.0)
    assert (told["incident_count"], told["incidents"], told["words"], told["cause_incident"]) == (0, [], [], None)


def test_it_is_written_when_there_is_news_and_at_the_end(tmp_path: Path) -> None:
    folder, replay = Folder(tmp_path), Replay()
    written = ReportFile(folder, lambda: 1000.0)
    replay.up()
    for _ in range(3):
        written.note(replay.run.status(), final=False)
    assert len(folder.written) == 1
    replay.at(5, failed("worker:1"))
    written.note(replay.run.status(), final=False)
    assert [name for name, _ in folder.written] == [FILE, FILE]
    written.note(replay.run.status(), final=True)
    assert len(folder.written) == 3


def test_an_agent_that_was_started_again_goes_on_with_the_time_that_the_run_began(tmp_path: Path) -> None:
    folder, replay = Folder(tmp_path), Replay()
    ReportFile(folder, lambda: 1000.0).note(replay.run.status(), final=False)
    ReportFile(folder, lambda: 1060.0).note(replay.run.status(), final=True)
    told = folder.written[-1][1]
    assert (told["began"], told["seconds"]) == (1000.0, 60.0)


@pytest.mark.parametrize("left", ["", '{"began": 1'])
def test_a_report_that_a_power_cut_has_left_in_pieces_is_none(left: str, tmp_path: Path) -> None:
    """Else the agent that a boot starts would end: a simulated history found it."""
    folder = RunFolder(tmp_path, "r-1", "a")
    folder.create()
    (folder.own / FILE).write_text(left)
    assert ReportFile(folder, lambda: 7.0).began == 7.0
