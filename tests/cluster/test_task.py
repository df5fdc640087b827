"""The environment contract of a task process."""

import json
from typing import Any, Dict

import pytest

from cluster.errors import TaskError
from cluster.task import Checkpoint, Task, Train

CLUSTER = {"ps": ["a:1"], "worker": ["b:1", "c:1"]}


def environment(role: str, index: int, cluster: Dict[str, Any] = CLUSTER) -> Dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": role, "index": index}})}


def task(role: str, index: int, cluster: Dict[str, Any] = CLUSTER) -> Task:
    return Task.from_environment(environment(role, index, cluster))


def test_without_a_chief_worker_0_is_the_chief() -> None:
    assert [task("worker", 0).is_chief, task("worker", 1).is_chief, task("ps", 0).is_chief] == [True, False, False]


def test_a_chief_counts_among_the_workers_and_comes_first() -> None:
    cluster = {**CLUSTER, "chief": ["d:1"]}
    chief, worker = task("chief", 0, cluster), task("worker", 1, cluster)
    assert chief.is_chief and not task("worker", 0, cluster).is_chief
    assert (chief.num_workers, chief.worker_index, worker.worker_index) == (3, 0, 2)


def test_an_evaluator_is_a_task_outside_the_cluster() -> None:
    assert task("evaluator", 0).name == "evaluator:0"


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({}, "found nothing"),
        ({"TF_CONFIG": "{"}, "expected JSON such as"),
        ({"TF_CONFIG": "[]"}, "expected JSON such as"),
        (environment("boss", 0), "expected a task type among chief, worker, ps, evaluator, found 'boss'"),
        (environment("worker", 2), "the task worker:2 is not in the cluster, which has 2 worker task(s)"),
    ],
)
def test_a_wrong_tf_config_is_told_with_what_was_expected(environ: Dict[str, str], told: str) -> None:
    with pytest.raises(TaskError) as caught:
        Task.from_environment(environ)
    assert told in str(caught.value)


def test_settings_left_out_take_their_default() -> None:
    train = Train.from_dict({"steps": 7, "checkpoint": {"keep": 2}})
    assert train == Train(steps=7, checkpoint=Checkpoint(keep=2))
    assert Train.from_dict({"checkpoint": None}) == Train()


@pytest.mark.parametrize("values", [{"step": 1}, {"checkpoint": {"every": 1}}])
def test_an_unknown_setting_is_refused_by_name(values: Dict[str, Any]) -> None:
    with pytest.raises(TaskError, match=r"expected keys among .*; found '(step|every)'"):
        Train.from_dict(values)


@pytest.mark.parametrize(
    ("values", "may"),
    [
        ({}, True),
        ({"sync": "plain"}, False),
        ({"sync": "stock"}, False),
        ({"clip_norm": 1.0}, False),
        ({"backup_workers": 1}, False),
        ({"mode": "async", "clip_norm": 1.0}, True),
    ],
)
def test_a_step_may_overlap_unless_the_settings_need_all_gradients_or_choose_another_way(
    values: Dict[str, Any], may: bool
) -> None:
    assert Train.from_dict(values).may_overlap is may


def test_settings_travel_as_the_keys_that_users_write() -> None:
    train = Train(steps=7, tower_batch_size=3, checkpoint=Checkpoint(keep=2))
    written = json.loads(json.dumps(train.to_dict()))
    assert (written["batch_size"], written["checkpoint"]["keep"]) == (3, 2)
    assert Train.from_dict(written) == train


def test_the_name_inside_the_code_is_no_key() -> None:
    with pytest.raises(TaskError, match=r"expected keys among .*, batch_size, .*; found 'tower_batch_size'"):
        Train.from_dict({"tower_batch_size": 3})


def test_a_warm_start_with_nulls_has_the_defaults() -> None:
    nulls = {"checkpoint": "/old", "only": None, "rename": None}
    found = Train.from_dict({"warm_start": nulls})
    assert found == Train.from_dict({"warm_start": {"checkpoint": "/old"}}) == Train.from_dict(found.to_dict())
    assert found.warm_start is not None and found.warm_start.rename == {}
