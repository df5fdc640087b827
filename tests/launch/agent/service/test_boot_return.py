"""After a boot the agent starts with what the earlier one had, and a start that fails is tried again for a while."""

import os
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

from launch.agent.service import boot_return
from launch.agent.service.boot_return import start_again
from launch.agent.state import boot_unit
from launch.agent.state.run_folder import RunFolder
from launch.agent.wire.run_request import RunRequest
from launch.status.values import to_values
from tests.support.agent.requested import RUN, run_request


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(boot_return, "PAUSE_S", 0.0)
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def kept(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path, RUN, "h")
    folder.create()
    os.environ["LOADED_MODULES"] = "cuda"
    boot_unit.write(folder, to_values(run_request(again=True)))
    return folder


def begun(folder: RunFolder, *answers: Dict[str, Any], seconds: float = 1.0) -> List[Any]:
    """The exit code, and each request with the environment that it was started in; time passes with each start."""
    now, starts = [0.0], []

    def begin(request: RunRequest) -> Dict[str, Any]:
        now[0] += seconds
        starts.append((request.again, dict(os.environ)))
        return answers[min(len(starts), len(answers)) - 1]

    return [start_again(folder.own, begin, lambda: now[0]), *starts]


def test_the_agent_has_the_environment_of_the_one_before_and_nothing_of_systemds(tmp_path: Path) -> None:
    folder = kept(tmp_path)
    os.environ["INVOCATION_ID"] = "1"
    del os.environ["LOADED_MODULES"]
    code, (again, environment) = begun(folder, {"ready": True})
    assert (code, again) == (0, True)
    assert environment["LOADED_MODULES"] == "cuda" and "INVOCATION_ID" not in environment


def test_a_start_that_fails_is_tried_again(tmp_path: Path) -> None:
    code, *starts = begun(kept(tmp_path), {"error": "a port is taken"}, {"ready": True})
    assert (code, len(starts)) == (0, 2)


def test_it_is_given_up_in_the_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, *starts = begun(kept(tmp_path), {"error": "no program"}, seconds=100.0)
    assert (code, len(starts)) == (1, 3)
    assert "the agent cannot start after a boot: no program" in capsys.readouterr().out


def test_a_run_that_is_over_is_not_started(tmp_path: Path) -> None:
    folder = kept(tmp_path)
    boot_unit.remove(folder)
    assert begun(folder, {"ready": True}) == [0]
