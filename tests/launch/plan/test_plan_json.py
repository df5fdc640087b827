"""plan.json of several hosts files has the names and values that it had: runs outlive the launchers that began them."""

import json
from pathlib import Path
from typing import Any, Dict

import pytest

from cluster.protocol.typed_json import from_values, to_values
from cluster.spec import load
from launch.agent.state.plan_file import KeptPlan
from launch.agent.wire.run_request import RunRequest
from launch.plan.agent_requests import requests
from tests.launch.plan.plans import CODE, plan_of

FOLDER = Path(__file__).parent / "plan_json"
NAMES = ("bare", "job", "command")


def written(name: str) -> Dict[str, Any]:
    """The request to each host, made of a hosts file in this folder."""
    plan = plan_of(load(f"{name}.yaml"))
    asked = requests(plan, CODE, "token", {"TOKEN": "t"}, resume=True, user="anna@desk7", detached=True)
    return {host: as_json(request) for host, request in asked.items()}


def as_json(record: Any) -> Dict[str, Any]:
    """The JSON values of a record; without those of ``--train``, which has a row for each new key of ``train``."""
    values: Dict[str, Any] = json.loads(json.dumps(to_values(record)))
    for task in values["tasks"]:
        argv = task.get("argv", [])
        task["argv"] = ["{}" if before == "--train" else word for before, word in zip(["", *argv], argv)]
    return values


def known(found: Any, before: Any) -> Any:
    """What is found of the keys that were there before, also below them."""
    if isinstance(before, dict) and isinstance(found, dict):
        return {key: known(found[key], before[key]) for key in before if key in found}
    if isinstance(before, list) and isinstance(found, list) and len(before) == len(found):
        return [known(*pair) for pair in zip(found, before)]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_field_of_a_plan_has_the_name_and_the_value_that_it_had(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(FOLDER)
    before: Dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    found = written(name)
    assert list(found) == list(before)
    for host, values in before.items():
        assert known(found[host], values) == values


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_that_was_written_before_is_read_as_it_was(name: str) -> None:
    for values in json.loads((FOLDER / f"{name}.json").read_text()).values():
        found = as_json(from_values(RunRequest, values))
        assert known(found, values) == values
        kept = from_values(KeptPlan, values)
        assert [task.name for task in kept.tasks or ()] == [task["name"] for task in values["tasks"]]
        assert as_json(kept)["retention"] == values["retention"]
        assert as_json(kept)["container"] == values["container"]
