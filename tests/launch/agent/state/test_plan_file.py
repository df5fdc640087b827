"""plan.json: kept without secrets, and read of runs that other launchers began."""

import json
import os
from pathlib import Path
from random import Random
from typing import Any, Dict, List

import pytest

from cluster.protocol.typed_json import from_values, to_values
from launch.agent.state import plan_file
from launch.agent.state.plan_file import KeptPlan
from launch.agent.state.run_folder import RunFolder
from launch.agent.wire.run_request import LeadAddress, RunRequest
from tests.support.launch.random_records import random_record

HERE = Path(__file__).parent
BEFORE = ("plan_of_a_lead.json", "plan_of_a_member.json")  # written before requests were dataclasses


def folder_of(workdir: Path) -> RunFolder:
    folder = RunFolder(workdir, "digits-20261120-155902", "gpu01")
    folder.create()
    return folder


def test_a_power_cut_leaves_no_plan_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by a simulated history: after the boot, no verb of an attached run could read the file."""
    synced: List[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    values = to_values(random_record(RunRequest, Random(5)))
    plan_file.write(folder_of(tmp_path), from_values(RunRequest, {**values, "returns": False}))
    assert len(synced) == 2  # the file, and its name in the folder


def written_before(name: str) -> Dict[str, Any]:
    values: Dict[str, Any] = json.loads((HERE / name).read_text())
    return values


def test_what_is_kept_is_what_was_asked_without_the_secrets(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    values = to_values(random_record(RunRequest, Random(5)))
    plan_file.write(folder, from_values(RunRequest, {**values, "secrets": {"KEY": "hunter2"}}))
    del values["secrets"]
    assert folder.read("plan.json") == values
    assert not [path for path in folder.own.iterdir() if "hunter2" in path.read_text()]


def test_the_plan_of_a_run_that_an_older_launcher_began_is_read(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    folder.write("plan.json", written_before("plan_of_a_lead.json"))
    plan = plan_file.read(folder)
    assert (plan.name, plan.file, plan.lead) == ("digits", "digits.yaml", LeadAddress("gpu01", "gpu01:2223"))
    assert (plan.environment, plan.checkpoint_dir) == ("d005173df9083a21", None)
    assert plan.code == {"launcher": "1" * 16, "job": "2" * 16}
    assert plan.run_plan is not None and plan.run_plan.hosts == ("gpu01", "cpu01", "gpu02")
    assert plan.names == ("worker:0",) and plan.tasks is not None and plan.tasks[0].gpus == (0, 1)
    assert plan.tasks[0].env["LAUNCH_RUN"] == "digits-20261120-155902"


@pytest.mark.parametrize("name", BEFORE)
def test_the_keys_are_those_of_the_plans_that_older_launchers_wrote(name: str) -> None:
    values = written_before(name)
    written = to_values(from_values(RunRequest, values))
    assert [task.pop("limits") for task in written["tasks"]] == [None] * len(values["tasks"])  # a later key
    assert not any(task.pop("waits") for task in written["tasks"])  # and another
    for key in ("patience", "rejoin_s", "quorum") if written["run_plan"] else ():  # and more of these
        assert not written["run_plan"].pop(key)
    for key in (
        ("success", "deadline_s", "restart_window_s", "restart_together", "keeps_state") if written["run_plan"] else ()
    ):
        written["run_plan"].pop(key)
    assert {key: written[key] for key in values} == values
    added = {key: value for key, value in written.items() if key not in values}
    assert not any(value for key, value in added.items() if key not in ("deserted_s", "quiet_s", "folder"))
    assert added["folder"] == "task"  # as it was before this key


@pytest.mark.parametrize("key", [*written_before(BEFORE[0]), None])
def test_a_plan_with_a_key_less_is_read_too(tmp_path: Path, key: Any) -> None:
    folder = folder_of(tmp_path)
    values = written_before(BEFORE[0])
    folder.write("plan.json", {name: value for name, value in values.items() if name != key and key is not None})
    plan = plan_file.read(folder)
    assert plan.lead == (None if key in ("lead", None) else LeadAddress("gpu01", "gpu01:2223"))


def test_without_a_file_the_plan_has_its_defaults(tmp_path: Path) -> None:
    assert plan_file.read(folder_of(tmp_path)) == KeptPlan(name="digits")


@pytest.mark.parametrize("text", ["{", "[]", '{"tasks": [{"gpus": []}]}', '{"name": 7}'])
def test_a_damaged_file_is_as_none(tmp_path: Path, text: str) -> None:
    folder = folder_of(tmp_path)
    (folder.own / "plan.json").write_text(text)
    assert plan_file.read(folder) == KeptPlan(name="digits")
