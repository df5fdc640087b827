"""Which hosts return after a boot, what their agents are asked, and which hosts' reboot ends a detached run."""

from typing import Any, Dict

from cluster.protocol.settings import Elastic
from launch.agent.wire.run_request import STAY_S, RunRequest
from launch.hosts.bundle import Bundle, Code
from launch.plan.agent_requests import requests
from launch.run.draft import ELASTIC_REJOIN_S, RETURN_S, Fragile, fragile, with_returns
from tests.support.launch.facts import plan_of

TASKS = ("ps:0@h2", "worker:0@h1", "worker:1@h3")
ALL: Dict[str, Any] = dict.fromkeys(("h1", "h2", "h3"))
LINGER = "anna does not linger there"


def asked(obstacles: Dict[str, Any], **changes: Any) -> Dict[str, RunRequest]:
    plan = plan_of(*TASKS, **changes)
    code = Code({"job": Bundle(b"", "0123456789abcdef")})
    return with_returns(plan, requests(plan, code, "token", {}, False, detached=True), obstacles)


def test_every_host_returns_where_nothing_is_in_the_way_and_the_others_wait_for_it() -> None:
    found = asked(ALL)
    assert [found[host].returns for host in ("h1", "h2", "h3")] == [True, True, True]
    assert found["h2"].stay_s == RETURN_S
    plan = found["h1"].run_plan
    assert plan is not None and plan.patience == {"h2": RETURN_S, "h3": RETURN_S} and plan.rejoin_s == RETURN_S
    assert fragile(plan_of(*TASKS), ALL) == []


def test_a_host_with_an_obstacle_is_waited_for_by_nobody_and_named() -> None:
    obstacles = {**ALL, "h1": LINGER, "h2": LINGER}
    found = asked(obstacles)
    assert [found[host].returns for host in ("h1", "h2", "h3")] == [False, False, True]
    assert found["h3"].stay_s == STAY_S
    plan = found["h1"].run_plan
    assert plan is not None and plan.patience == {"h3": RETURN_S}
    assert fragile(plan_of(*TASKS), obstacles) == [Fragile(("h1", "h2"), LINGER)]


def test_where_no_host_returns_nothing_changes() -> None:
    plan = asked(dict.fromkeys(ALL, LINGER))["h1"].run_plan
    assert plan is not None and plan.patience == {} and plan.rejoin_s is None


def test_an_elastic_run_goes_on_without_a_host_that_boots_so_only_the_leads_ends_it() -> None:
    obstacles = dict.fromkeys(ALL, LINGER)
    assert fragile(plan_of(*TASKS, elastic=Elastic(1)), obstacles) == [Fragile(("h1",), LINGER)]
    plan = asked(ALL, elastic=Elastic(1))["h1"].run_plan
    assert plan is not None and plan.patience == {} and plan.rejoin_s == ELASTIC_REJOIN_S


def test_neither_secrets_nor_the_environment_of_a_launcher_are_kept_for_a_boot() -> None:
    assert not any(request.returns for request in asked(ALL, secrets=("KEY",)).values())
    assert not any(request.returns for request in asked(ALL, local=True).values())
    (found,) = fragile(plan_of(*TASKS, local=True), ALL)
    assert found.why == ""


def test_an_allocation_of_slurm_does_not_outlive_its_hosts() -> None:
    assert not any(request.returns for request in asked(ALL, transport="slurm").values())
