"""A formation is made of the hosts that are there, and numbers its tasks without gaps."""

import json
from typing import Any, Dict

from launch.agent.supervision.formation import Formation, describe, form, shortage
from tests.support.agent.histories import run_plan

TASKS = run_plan(
    ["ps:0@a", "ps:1@b", "ps:2@c+", "worker:0@d", "worker:1@e", "worker:2@b", "evaluator:0@f"], min_workers=1
).tasks


def cluster(formation: Formation) -> Dict[str, Any]:
    told: Dict[str, Any] = json.loads(formation.cluster)
    return told


def test_a_run_begins_with_all_of_its_tasks_but_the_spares() -> None:
    first = form(0, TASKS, ())
    assert cluster(first) == {"worker": ["d:2222", "e:2222", "b:2222"], "ps": ["a:2222", "b:2222"]}
    assert list(first.cluster) and "ps:2" not in first.indices
    assert describe(first, TASKS) == "formation 0: 3 of 3 workers, 2 of 2 ps"


def test_tasks_of_a_lost_host_leave_no_gap_and_a_spare_stands_in_for_its_ps() -> None:
    without = form(1, TASKS, ["a"])
    assert cluster(without)["ps"] == ["b:2222", "c:2222"]
    assert {name: without.indices[name] for name in ("ps:1", "ps:2", "worker:2")} == {
        "ps:1": 0, "ps:2": 1, "worker:2": 2,
    }  # fmt: skip
    assert form(1, TASKS, ["e"]).indices["worker:2"] == 1


def test_without_spares_the_variables_move_to_the_ps_that_are_left() -> None:
    formation = form(3, TASKS, ["a", "c"])
    assert cluster(formation)["ps"] == ["b:2222"]
    assert describe(formation, TASKS) == "formation 3: 3 of 3 workers, 1 of 2 ps"


def test_the_roles_stand_in_the_order_in_which_the_launcher_tells_them() -> None:
    assert list(cluster(form(0, run_plan(["ps:0@a", "chief:0@a", "worker:0@b"]).tasks, ()))) == [
        "chief",
        "worker",
        "ps",
    ]


def test_an_evaluator_follows_but_is_no_part_of_the_cluster() -> None:
    assert form(0, TASKS, ()).indices["evaluator:0"] == 0
    assert form(0, TASKS, ()).cluster == form(0, TASKS, ["f"]).cluster
    assert "evaluator:0" not in form(0, TASKS, ["f"]).indices


def test_too_few_workers_or_no_ps_cannot_train_and_it_is_said_what_is_missing() -> None:
    assert shortage(form(1, TASKS, ["e"]), TASKS, 2) is None
    assert shortage(form(1, TASKS, ["e", "b"]), TASKS, 2) == (
        "expected at least 2 workers (elastic.min_workers), found 1 of 3"
    )
    assert shortage(form(1, TASKS, ["a", "b", "c"]), TASKS, 1) == "none of 2 ps is left, and no spare ps"


def test_what_a_task_says_of_others_is_told_with_their_names_in_the_run() -> None:
    formation = form(1, TASKS, ["a", "e"])
    assert formation.name_as_run("no answer from ps:0 and worker:1") == "no answer from ps:1 and worker:2"
    assert formation.name_as_run("From /job:worker/replica:0/task:1: x") == "From /job:worker/replica:0/task:2: x"
    assert formation.name_as_run("ps:2222, worker:7, gpu:0") == "ps:2222, worker:7, gpu:0"
