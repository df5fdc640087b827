"""Each host dials what its tasks and its agent will, and nothing else."""

from typing import Dict, List

from cluster.task import Train
from launch.check.ways import dials
from launch.plan.plan import Plan
from tests.support.launch.facts import plan_of


def addresses(plan: Plan) -> Dict[str, List[str]]:
    return {host: sorted(target.address for target in found.targets) for host, found in dials(plan).items()}


def test_workers_and_ps_dial_each_other_and_every_agent_dials_the_leads() -> None:
    plan = plan_of("ps:0@p0", "ps:1@p1", "worker:0@w0", "worker:1@w1")
    assert plan.control == "w0:2223"
    assert addresses(plan) == {
        "w0": ["p0:2222", "p1:2222"],
        "w1": ["p0:2222", "p1:2222", "w0:2223"],
        "p0": ["w0:2222", "w0:2223", "w1:2222"],
        "p1": ["w0:2222", "w0:2223", "w1:2222"],
    }


def test_a_chief_takes_a_workers_part_and_an_evaluator_dials_the_chief_alone() -> None:
    plan = plan_of("ps:0@p0", "chief:0@c", "worker:0@w0", "evaluator:0@e")
    assert addresses(plan) == {
        "c": ["p0:2222"],
        "p0": ["c:2222", "c:2223", "w0:2222"],
        "w0": ["c:2223", "p0:2222"],
        "e": ["c:2222", "c:2223"],
    }


def test_one_graph_for_all_needs_ways_between_the_workers() -> None:
    plan = plan_of("ps:0@p0", "worker:0@w0", "worker:1@w1", train=Train(replication="in-graph"))
    assert addresses(plan)["w1"] == ["p0:2222", "w0:2222", "w0:2223", "w1:2222"]


def test_a_program_of_others_may_dial_every_task() -> None:
    plan = plan_of("ps:0@p0", "worker:0@w0", "worker:1@w1", command=("a",))
    assert addresses(plan)["w1"] == ["p0:2222", "w0:2222", "w0:2223", "w1:2222"]
    assert addresses(plan)["p0"] == ["p0:2222", "w0:2222", "w0:2223", "w1:2222"]


def test_what_many_hosts_dial_is_one_list() -> None:
    plan = plan_of(*(f"ps:{n}@p{n}" for n in range(50)), *(f"worker:{n}@w{n}" for n in range(50)))
    found = dials(plan)
    assert len({id(targets) for targets in found.values()}) == 3  # the lead's, the ps', the other workers'
