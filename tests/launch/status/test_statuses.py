"""Statuses become JSON values and are read back, those of other versions too."""

import re
from dataclasses import fields
from typing import Any, Dict

import pytest

from cluster.protocol.typed_json import Malformed, from_values, to_values, updated
from launch.status.incident_status import IncidentStatus
from launch.status.run import FormationStatus, RunStatus
from launch.status.task import TaskStatus
from tests.launch.status.recorded import printed


@pytest.mark.parametrize("name", ["running", "failed"])
def test_a_status_that_is_read_and_written_again_is_the_same_in_the_same_order(name: str) -> None:
    values = printed(name)
    again = to_values(from_values(RunStatus, values))
    assert again == values
    assert list(again) == list(values)
    assert [list(task) for task in again["tasks"]] == [list(task) for task in values["tasks"]]
    assert [list(each) for each in again["incidents"]] == [list(each) for each in values["incidents"]]


def test_what_is_read_has_its_parts_as_statuses() -> None:
    status = from_values(RunStatus, printed("running"))
    assert status.formation == FormationStatus(0, 4, 4, 1, 1, ["c"], True)
    assert [task.title for task in status.tasks][:3] == ["ps:0@a", "worker:0@a", "worker:1@b"]
    assert [each.what for each in status.incidents[0].did] == ["worker:1 restarted after 1.0 s, attempt 2 of 3"]
    (failed,) = from_values(RunStatus, printed("failed")).incidents
    assert [each.title for each in failed.followed] == ["worker:0@a", "worker:1@b"]


def test_a_field_that_this_version_does_not_know_is_ignored_in_every_part() -> None:
    values = printed("running")
    expected = from_values(RunStatus, values)
    for part in (values, values["formation"], values["tasks"][0], values["incidents"][0]["did"][0]):
        part["of_tomorrow"] = {"more": 1}
    assert from_values(RunStatus, values) == expected


@pytest.mark.parametrize("kind", [RunStatus, FormationStatus, TaskStatus, IncidentStatus])
def test_any_field_may_be_missing_and_has_its_default_then(kind: Any) -> None:
    assert from_values(kind, {}) == kind()
    for each in fields(kind):
        values = to_values(kind())
        del values[each.name]
        assert from_values(kind, values) == kind()


def test_a_value_of_a_wrong_type_is_named_by_its_field() -> None:
    for values, place in [({"tasks": [{"index": None}]}, "tasks[0].index"), ({"loss": "low"}, "loss")]:
        with pytest.raises(Malformed, match=re.escape(place)):
            from_values(RunStatus, values)


def test_a_change_replaces_the_fields_that_it_names_and_no_other() -> None:
    before = from_values(RunStatus, printed("running"))
    change: Dict[str, Any] = {"state": "stopped", "formation": None, "incidents": printed("failed")["incidents"]}
    after = updated(before, {**change, "of_tomorrow": 1})
    assert to_values(after) == {**printed("running"), **change}
    assert before.state == "running"


def test_two_statuses_do_not_share_a_list() -> None:
    assert RunStatus().tasks is not RunStatus().tasks
