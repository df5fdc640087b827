"""The folder that programs keep from run to run: who has it, and when a run may begin beside its files."""

from pathlib import Path
from typing import Any

import pytest

from launch.agent.service.located import folder_of, located
from launch.agent.tasks import state_folder
from launch.agent.wire.run_request import RunRequest
from tests.support.agent.requested import run_request, task_request

ARGV = ("train", "--dir={state_folder}/model")


def asked(workdir: Path, **changes: Any) -> RunRequest:
    fields = {"workdir": str(workdir), "code": {"launcher": "1" * 16, "job": "2" * 16}, **changes}
    return run_request(task_request(argv=ARGV, chief=True), **fields)


def create(request: RunRequest) -> Any:
    return state_folder.create(request, folder_of(request))


def test_runs_of_one_name_have_one_folder_that_others_cannot_read(tmp_path: Path) -> None:
    for run in ("r-20260101-000000", "r-20260202-000000"):
        request = asked(tmp_path, run=run)
        assert create(request) == []
        (task,) = located(request, folder_of(request)).tasks
        assert task.argv[1] == f"--dir={tmp_path}/state/r/model"
    assert (tmp_path / "state" / "r").stat().st_mode & 0o777 == 0o700


def test_a_new_run_is_refused_beside_files_of_an_earlier_one_and_a_resumed_one_is_not(tmp_path: Path) -> None:
    create(asked(tmp_path))
    (tmp_path / "state" / "r" / "model").touch()
    expected = (
        r"^\{state_folder\}: expected no files of an earlier run in \S+/state/r, found some; continue from them with "
        "`launch up --resume r.yaml`, "
    )
    with pytest.raises(ValueError, match=expected):
        create(asked(tmp_path))
    assert create(asked(tmp_path, resume=True)) == []
    assert create(asked(tmp_path, again=True)) == []
    assert create(asked(tmp_path, name="other")) == []


def test_a_resumed_run_that_finds_nothing_on_the_chief_s_host_reports_that(tmp_path: Path) -> None:
    where = f"{{state_folder}}: no files of an earlier run in {tmp_path}/state/r; the program begins without them"
    assert create(asked(tmp_path, resume=True)) == [where]
    worker = run_request(task_request(argv=ARGV), workdir=str(tmp_path), resume=True)
    assert create(worker) == []


def test_a_host_whose_tasks_do_not_name_it_has_no_such_folder(tmp_path: Path) -> None:
    create(run_request(task_request(argv=("train", "${state_folder}")), workdir=str(tmp_path)))
    assert not (tmp_path / "state").exists()
