"""After a boot the agent starts with what the earlier one had, where the run is still to go on."""

import os
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

from launch.agent.service.beginning import AGAIN, DONE, start_again
from launch.agent.state import boot_unit
from launch.agent.state.run_folder import RunFolder
from launch.agent.wire.run_request import RunRequest
from tests.support.agent.requested import RUN, run_plan, run_request


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def kept(tmp_path: Path, **changes: Any) -> RunFolder:
    folder = RunFolder(tmp_path, RUN, "h")
    folder.create()
    os.environ["LOADED_MODULES"] = "cuda"
    boot_unit.write(folder, run_request(again=True, **changes))
    return folder


def begun(folder: RunFolder, *answers: Dict[str, Any]) -> List[Any]:
    """The exit code, and each start with the environment that it had."""
    starts = []

    def begin(request: RunRequest) -> Dict[str, Any]:
        starts.append((request.again, dict(os.environ)))
        return answers[len(starts) - 1]

    return [start_again(folder.own, begin), *starts]


def test_the_agent_has_the_environment_of_the_one_before_and_nothing_of_systemds(tmp_path: Path) -> None:
    folder = kept(tmp_path)
    os.environ["INVOCATION_ID"] = "1"
    del os.environ["LOADED_MODULES"]
    code, (again, environment) = begun(folder, {"ready": True})
    assert (code, again) == (DONE, True)
    assert environment["LOADED_MODULES"] == "cuda" and "INVOCATION_ID" not in environment


def test_systemd_is_to_try_a_start_again_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = kept(tmp_path)
    assert begun(folder, {"error": "no program"})[0] == AGAIN and boot_unit.files(folder)
    assert "the agent cannot start after a boot: no program" in capsys.readouterr().out


def test_a_run_that_somebody_has_ended_is_not_started(tmp_path: Path) -> None:
    folder = kept(tmp_path)
    boot_unit.remove(folder)
    assert begun(folder) == [DONE]


def test_a_folder_that_is_not_mounted_yet_is_waited_for(tmp_path: Path) -> None:
    assert begun(RunFolder(tmp_path, RUN, "h")) == [AGAIN]


def test_a_run_that_was_over_is_not_started_and_will_not_be(tmp_path: Path) -> None:
    folder = kept(tmp_path, run_plan=run_plan("h:1"))
    folder.write("detached.json", {})
    folder.write("status.json", {"state": "succeeded"})
    assert begun(folder) == [DONE] and not boot_unit.files(folder)
