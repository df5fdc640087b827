"""RANK and the like, as torchrun sets them: who has which rank, and a port that nobody else of the run has."""

from dataclasses import replace
from typing import Dict

import pytest

from cluster.task import RANK_VARIABLES
from launch.plan.local_spec import localised
from tests.launch.plan.plans import TWO, Read, plan_of


def ranks(read: Read, text: str) -> Dict[str, str]:
    """``RANK/WORLD_SIZE LOCAL_RANK MASTER_ADDR:MASTER_PORT`` of each task."""
    tasks = plan_of(read(text)).tasks
    return {
        task.name: "{RANK}/{WORLD_SIZE} {LOCAL_RANK} {MASTER_ADDR}:{MASTER_PORT}".format(
            **{name: task.env.get(name, "-") for name in RANK_VARIABLES}
        )
        for task in tasks
    }


def test_ranks_count_the_chief_and_the_workers_and_local_ranks_those_of_a_host(read: Read) -> None:
    roles = '{ps: [a], chief: [b], worker: ["b", "a", "b"], evaluator: [b]}'
    assert ranks(read, f"command: [train]\ncluster: {roles}") == {
        "ps:0": "-/4 - b:2227",
        "chief:0": "0/4 0 b:2227",
        "worker:0": "1/4 1 b:2227",
        "worker:1": "2/4 0 b:2227",
        "worker:2": "3/4 2 b:2227",
        "evaluator:0": "-/4 - b:2227",
    }


def test_without_a_chief_worker_0_has_rank_0(read: Read) -> None:
    assert ranks(read, "job: digits" + TWO)["worker:1"] == "1/2 0 gpu01:2302"


@pytest.mark.parametrize(
    ("worker", "port"),
    [
        ("[a]", 2223), ('["a:65535", "a:65534"]', 65533), ('["a:65535", "b:65535"]', 65534),
        ('["a:65534", "b:9"]', 65533),
        ('[{host: a, address: "fd00::1", port: 3000}]', 3001),
    ],
)  # fmt: skip
def test_the_port_is_none_of_the_tasks_and_none_of_the_agents(worker: str, port: int, read: Read) -> None:
    plan = plan_of(read(f"command: [train]\ncluster: {{worker: {worker}}}"))
    assert plan.tasks[0].env["MASTER_PORT"] == str(port)
    assert plan.tasks[0].env["MASTER_ADDR"] in ("a", "fd00::1")


def test_a_local_run_has_a_free_port(read: Read) -> None:
    spec = read("command: [train]\ncluster: {worker: [a, b]}")
    plan = plan_of(localised(spec, [7001, 7002], [7003, 7004], 7005))
    assert [(task.env["MASTER_ADDR"], task.env["MASTER_PORT"]) for task in plan.tasks] == [("localhost", "7005")] * 2


def test_the_values_of_the_file_win(read: Read) -> None:
    spec = read("command: [train]\nenv: {all: {MASTER_PORT: 29500}, worker: {LOCAL_RANK: 0}}" + TWO)
    worker = plan_of(spec).tasks[-1]
    assert (worker.env["MASTER_PORT"], worker.env["LOCAL_RANK"], worker.env["RANK"]) == ("29500", "0", "1")


def test_an_elastic_run_has_none_since_its_cluster_changes(read: Read) -> None:
    tasks = plan_of(read("job: digits\nelastic: {min_workers: 1}" + TWO)).tasks
    assert not [name for task in tasks for name in RANK_VARIABLES if name in task.env]


def test_a_chief_may_be_called_master_in_tf_config_and_in_the_command_only(read: Read) -> None:
    plan = plan_of(read('command: [t, "{role}", "{chief_hosts}"]\ncluster: {ps: [a], master: [b], worker: [c]}'))
    chief = plan.tasks[1]
    assert (chief.name, chief.role, chief.chief, chief.argv) == ("chief:0", "chief", True, ("t", "master", "b:2222"))
    assert plan.environment(chief)["TF_CONFIG"] == (
        '{"cluster": {"master": ["b:2222"], "worker": ["c:2222"], "ps": ["a:2222"]}, '
        '"task": {"type": "master", "index": 0}, "environment": "cloud"}'
    )
    assert '"type": "worker"' in plan.environment(plan.tasks[2])["TF_CONFIG"]
    renamed = plan_of(replace(plan.spec, chief_name="chief"))
    assert '"type": "chief"' in renamed.environment(renamed.tasks[1])["TF_CONFIG"]
