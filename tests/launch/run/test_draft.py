"""The draft of a run: what ``up`` plans."""

import sys
from datetime import datetime, timezone
from pathlib import Path
from types import FrameType
from typing import Any, List, Optional, Tuple

import pytest

from launch.hosts.bundle import Code, JobCode, with_folder
from launch.run.draft import LARGE, RunStart, draft, remarks_on_size
from launch.target import Target
from tests.test_architecture import FLOORS

BEGINS = datetime(2026, 11, 23, 12, 0, 59, tzinfo=timezone.utc)


def target(folder: Path) -> Target:
    (folder / "r.yaml").write_text("job: digits\ncluster: {ps: [localhost], worker: [localhost, localhost]}\n")
    return Target(str(folder / "r.yaml"))


def floor(module: str) -> Optional[int]:
    """The floor of a module of the launcher; None for one that lies in no room."""
    room = module.split(".")[1:2] if module.startswith("launch.") else []
    return next((number for number, rooms in enumerate(FLOORS["launch"]) if room and room[0] in rooms), None)


def test_what_up_plans_climbs_no_floor(tmp_path: Path) -> None:
    climbs: List[Tuple[str, str]] = []
    calls: List[str] = []

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event != "call" or frame.f_back is None:
            return
        above, below = (each.f_globals.get("__name__", "") for each in (frame.f_back, frame))
        high, low = floor(above), floor(below)
        if high is not None and low is not None:
            calls.append(below)
            climbs.extend([(above, below)] if low > high else [])

    asked = target(tmp_path)
    sys.setprofile(profile)
    try:
        drafted = draft(asked, RunStart(asked.spec()), BEGINS)
    finally:
        sys.setprofile(None)
    assert len(drafted.requests) == 1 and "launch.plan.plan" in calls
    assert climbs == []


def test_a_run_of_the_next_second_differs_in_its_name_alone(tmp_path: Path) -> None:
    asked = target(tmp_path)
    first = draft(asked, RunStart(asked.spec()), BEGINS)
    second = first.a_second_later()
    assert (first.plan.run, second.plan.run) == ("r-20261123-120059", "r-20261123-120100")
    assert [task.env["LAUNCH_RUN"] for task in second.plan.tasks] == ["r-20261123-120100"] * 3
    assert [task.argv for task in second.plan.tasks] == [task.argv for task in first.plan.tasks]
    assert {host: request.token for host, request in second.requests.items()} == {
        host: request.token for host, request in first.requests.items()
    }


@pytest.mark.parametrize("package", [None, "mine"])
@pytest.mark.parametrize("large", [False, True])
def test_a_large_folder_of_a_job_is_named_with_its_size(large: bool, package: Optional[str], tmp_path: Path) -> None:
    folder = tmp_path / (package or "")
    folder.mkdir(exist_ok=True)
    (folder / "data.bin").write_bytes(bytes(LARGE if large else 1000))
    job = JobCode(tmp_path, "mine.job" if package else "job.py", package)
    found = remarks_on_size(with_folder(Code({}), job), job)
    assert [each.partition(";")[0] for each in found] == [f"sends the folder {folder} to each host, 5.01 MB"] * large
    assert remarks_on_size(Code({}), JobCode(None, "installed.job")) == []
