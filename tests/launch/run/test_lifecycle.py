"""Which hosts end a detached run by a reboot or with their agents."""

from cluster.spec.model import Elastic
from launch.run.lifecycle import fragile_hosts
from tests.support.launch.facts import plan_of

TASKS = ("ps:0@h2", "worker:0@h1", "worker:1@h3")


def test_each_host_ends_a_run_that_is_not_elastic() -> None:
    assert fragile_hosts(plan_of(*TASKS)) == "h[1-3]"


def test_the_host_of_the_lead_ends_an_elastic_run() -> None:
    assert fragile_hosts(plan_of(*TASKS, elastic=Elastic(1))) == "h1"


def test_a_local_run_has_only_this_machine() -> None:
    assert fragile_hosts(plan_of(*TASKS, local=True)) == "this machine"
