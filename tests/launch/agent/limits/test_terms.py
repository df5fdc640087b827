"""What a host can enforce of some limits, and what it says of the rest."""

from pathlib import Path
from typing import Any, List, Optional

import pytest

from cluster.protocol.settings import GIB, Limits
from launch.agent.limits.control_groups import V2, GroupPlace
from launch.agent.limits.enforcement import WATCHED, Enforcement, LimitedHost, Terms, agree, wishes
from tests.support.agent.requested import task_request

PLACE = GroupPlace(Path("/cg"), V2)


def host(**changes: Any) -> LimitedHost:
    fields = {"find_place": lambda: PLACE, "refusal": lambda enforcement: None, **changes}
    return LimitedHost(16 * GIB, {0, 1, 2, 3}, {0: {0, 1, 2, 3}}, **fields)


def agreed(limits: Limits, **changes: Any) -> Terms:
    return agree({"ps:0": limits}, lambda processor: True, host(**changes))


def no_place() -> GroupPlace:
    raise OSError("/cg: Permission denied")


def test_tasks_without_limits_ask_nothing_of_the_host() -> None:
    tasks = [task_request("ps:0"), task_request("ps:1", limits=Limits(nice=5))]
    assert wishes(tasks) == {"ps:1": Limits(nice=5)}
    assert agree({}, lambda processor: False, host(find_place=no_place)) == Terms()


def test_where_groups_can_be_made_the_kernel_limits_memory_and_there_is_nothing_to_say() -> None:
    limits = Limits(memory_gib=4, processors=2)
    assert agreed(limits) == Terms({"ps:0": limits}, {"ps:0": (0, 1)}, PLACE)


def test_where_no_group_can_be_made_the_agent_looks_and_the_reason_is_said() -> None:
    terms = agreed(Limits(memory_gib=4), find_place=no_place)
    assert (terms.place, terms.problems) == (None, ())
    assert terms.notes == (f"{WATCHED} (/cg: Permission denied)",)


def test_without_a_limit_of_memory_no_group_is_looked_for() -> None:
    assert agreed(Limits(nice=5), find_place=no_place).notes == ()


def test_a_limit_that_no_task_could_reach_is_a_problem() -> None:
    (problem,) = agreed(Limits(memory_gib=64)).problems
    assert problem == "limits.memory_gib of ps:0: expected at most the 16.0 GiB that this host has, found 64"


def test_a_limit_that_the_kernel_refuses_to_this_user_is_a_problem_and_equal_limits_are_tried_once() -> None:
    tried: List[Enforcement] = []

    def refusal(enforcement: Enforcement) -> Optional[str]:
        tried.append(enforcement)
        return "limits.nice: Permission denied" if enforcement.limits.nice == -5 else None

    limits = {"ps:0": Limits(nice=-5), "ps:1": Limits(nice=-5), "ps:2": Limits(nice=5)}
    terms = agree(limits, lambda processor: True, host(refusal=refusal))
    assert terms.problems == ("ps:0: limits.nice: Permission denied",)
    assert len(tried) == 2


@pytest.mark.parametrize("limits", [Limits(processors=5), Limits(numa_node=7)])
def test_processors_and_nodes_that_are_not_there_are_problems(limits: Limits) -> None:
    (problem,) = agreed(limits).problems
    assert problem.startswith(f"limits.{next(iter(limits.given()))} of ps:0: expected ")
