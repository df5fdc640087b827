"""Commands after the tasks: each runs, within one time for all, and what went wrong is there to be read."""

import asyncio
import os
from pathlib import Path
from typing import List, Optional

import pytest

from launch.agent import after as module
from launch.agent.state.run_folder import RunFolder
from tests.support.launch.machine import lives
from tests.support.waiting import eventually

pytestmark = pytest.mark.not_fast

SECRETS = {"KEY": "hunter2!"}


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    made = RunFolder(tmp_path, "r-1", "h1")
    made.create()
    return made


def problem_of(folder: RunFolder, *commands: str) -> Optional[str]:
    began: List[int] = []
    asyncio.run(module.run(commands, folder, SECRETS, began.append))
    assert not [pid for pid in began if lives(pid)]
    return module.problem_of(folder)


def test_each_runs_in_the_runs_folder_with_its_name_and_the_secrets_also_after_one_that_failed(
    folder: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = problem_of(folder, "echo $LAUNCH_RUN $KEY > one", "echo no $KEY; exit 3", "pwd > three", "kill -9 $$")
    assert problem == "`echo no $KEY; exit 3`: exit code 3; no (secret); `kill -9 $$`: killed by SIGKILL"
    assert (folder.own / "one").read_text() == "r-1 hunter2!\n"
    assert (folder.own / "three").read_text() == f"{os.path.realpath(str(folder.own))}\n"
    assert capsys.readouterr().err.count("after: `") == 2


def test_commands_that_succeed_leave_no_problem(folder: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    assert problem_of(folder, "true", "echo fine") is None
    assert capsys.readouterr().err == ""


def test_all_have_one_time_together_and_what_they_have_started_ends(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WITHIN_S", 0.5)
    problem = problem_of(folder, "sleep 1000 & echo $! > child; wait", "touch never")
    over = "the 0 s for all commands were over"
    assert (problem or "").endswith(f"wait`: killed: {over}; `touch never`: not started: {over}")
    child = int((folder.own / "child").read_text())  # the kernel ends it on its own time, after the shell
    eventually("the end of what the command has started", lambda: not lives(child))
    assert not (folder.own / "never").exists()


def test_a_run_without_commands_or_with_a_torn_file_has_no_problem(folder: RunFolder) -> None:
    assert problem_of(folder) is None and os.listdir(str(folder.own)) == []
    (folder.own / "after.json").write_text('{"prob')
    assert module.problem_of(folder) is None
