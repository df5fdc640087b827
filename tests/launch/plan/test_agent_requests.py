"""What each host's agent is asked to run, as the plan has it."""

import json
from typing import Any

import pytest

from cluster.protocol.settings import Container, Hook, Notice
from cluster.protocol.typed_json import to_values
from launch.agent.wire.run_request import LeadAddress
from launch.plan.agent_requests import requests
from launch.plan.estimate import remarks
from tests.launch.plan.plans import CODE, TWO, Read, plan_of


def test_each_host_is_asked_for_its_own_tasks_and_the_lead_for_the_run_too(read: Read) -> None:
    asked = requests(plan_of(read("job: digits" + TWO)), CODE, "token", {"KEY": "value"}, resume=True)
    assert list(asked) == ["gpu01", "cpu01", "cpu02", "gpu02"]
    assert [task.name for task in asked["cpu02"].tasks] == ["ps:1"]
    assert [host for host, request in asked.items() if request.run_plan is not None] == ["gpu01"]
    assert {request.token for request in asked.values()} == {"token"}
    assert asked["gpu02"].secrets == {"KEY": "value"} and asked["gpu02"].resume
    assert asked["gpu02"].code == {"launcher": "1" * 16, "job": "2" * 16}
    assert asked["gpu02"].lead == LeadAddress("gpu01", "gpu01:2301")


def test_the_cluster_is_told_to_each_host_once_and_not_in_every_task(read: Read) -> None:
    text = "cluster: {ps: [cpu01], worker: [{host: gpu01, count: 4}]}"
    asked = requests(plan_of(read("job: digits\n" + text)), CODE, "", {}, resume=False)["gpu01"]
    assert json.loads(asked.cluster)["ps"] == ["cpu01:2222"] and len(asked.tasks) == 4
    assert not any("TF_CONFIG" in task.env for task in asked.tasks)


def test_what_is_asked_of_the_hosts_grows_with_the_tasks_and_not_with_their_square(read: Read) -> None:
    def size(hosts: int) -> int:
        text = f"command: [a, '{{index}}']\ncluster: {{worker: ['gpu[00001-{hosts:05}]']}}"
        asked = {host: to_values(each) for host, each in requests(plan_of(read(text)), CODE, "", {}, False).items()}
        plan = asked["gpu00001"].pop("run_plan")
        clusters = [request.pop("cluster") for request in asked.values()]
        assert len({id(cluster) for cluster in clusters}) == 1  # in memory there is one
        return len(json.dumps([plan, clusters[0], asked]))

    assert size(400) == pytest.approx(4 * size(100), rel=0.05)


@pytest.mark.parametrize(("what", "judge", "steps"), [("job: digits", "outcome", 1000), ("command: [a]", "exit", None)])
def test_a_job_is_judged_by_its_outcome_and_a_command_by_its_exit_codes(
    read: Read, what: str, judge: str, steps: Any
) -> None:
    run = requests(plan_of(read(what + TWO)), CODE, "", {}, resume=False)["gpu01"].run_plan
    assert run is not None and (run.judge, run.steps) == (judge, steps)
    assert run.hosts == ["gpu01", "cpu01", "cpu02", "gpu02"]


def test_without_the_key_setup_no_environment_is_asked_for(read: Read) -> None:
    request = requests(plan_of(read("command: [a]" + TWO)), CODE, "token", {}, resume=False)["gpu01"]
    assert (request.environment, request.setup) == (None, None)


def test_with_a_guard_every_host_is_told_of_all_addresses_of_the_cluster(read: Read) -> None:
    for text, peers in (("", None), ("\nguard: nftables", ("cpu01", "cpu02", "gpu01", "gpu02"))):
        asked = requests(plan_of(read("job: digits" + TWO + text)), CODE, "token", {}, resume=False)
        assert [request.peers for request in asked.values()] == [peers] * 4


def test_spares_are_shipped_to_and_supervised_but_no_task_is_told_of_them(read: Read) -> None:
    plan = plan_of(read("job: digits\nspares: [cpu03]\nelastic: {min_workers: 1}" + TWO))
    asked = requests(plan, CODE, "token", {}, False)
    assert json.loads(plan.cluster)["ps"] == ["cpu01:2222", "cpu02:2222"]
    assert [task.name for task in asked["cpu03"].tasks] == ["ps:2"]
    run = asked["gpu01"].run_plan
    assert run is not None and run.min_workers == 1
    assert [task.name for task in run.tasks if task.spare] == ["ps:2"]


def test_the_lead_alone_is_told_of_the_receivers_of_events_with_names_in_the_place_of_secrets(read: Read) -> None:
    hooks = "\nsecrets: [URL]\non: {failed: '{URL}', started: [page, '7']}"
    asked = requests(plan_of(read("job: digits" + TWO + hooks)), CODE, "", {"URL": "https://h/key"}, False)
    assert asked["gpu01"].hooks == (Hook("failed", url="{URL}"), Hook("started", ("page", "7")))
    assert {request.notice for request in asked.values()} == {None}
    assert [request.hooks for host, request in asked.items() if host != "gpu01"] == [(), (), ()]


def test_every_host_is_told_how_it_learns_that_its_machine_goes(read: Read) -> None:
    plan = plan_of(read("job: digits" + TWO + "\nnotice: {command: [ask], every_s: 9}"))
    asked = requests(plan, CODE, "", {}, False)
    assert {request.notice for request in asked.values()} == {Notice(("ask",), 9)}
    assert list(remarks(plan)) == ["notice: every host runs `ask` every 9 s, and leaves the run if the exit code is 0"]


def test_every_host_is_told_what_to_run_after_its_tasks(read: Read) -> None:
    plan = plan_of(read("job: digits" + TWO + "\nafter: [rm a, rm b]"))
    asked = requests(plan, CODE, "", {}, False)
    assert {request.after for request in asked.values()} == {("rm a", "rm b")}
    assert list(remarks(plan)) == ["after: every host runs `rm a`, `rm b` once its tasks have ended"]


def test_every_host_runs_its_tasks_in_the_container_and_its_agent_outside(read: Read) -> None:
    plan = plan_of(read("job: digits" + TWO + "\ncontainer: {image: tf, python: py, args: [-B]}"))
    asked = requests(plan, CODE, "", {}, False)
    assert {request.container for request in asked.values()} == {Container("tf", "py", None, ("-B",))}
    assert {task.argv[0] for request in asked.values() for task in request.tasks} == {"py"}
    assert set(plan.python.values()) == {"python3"}  # of agents, which need no packages
    named = plan_of(read("job: digits\npython: python3.9" + TWO + "\ncontainer: {image: tf}"))
    assert set(named.python.values()) == {"python3.9"}
    assert {named.task_python(host) for host in named.hosts} == {"python3"}


@pytest.mark.parametrize(
    ("text", "together"),
    [
        ("command: [a]\ncluster: {worker: [a, b]}", True),
        ("command: [a]\ncluster: {chief: [a], worker: [b], evaluator: [c]}", True),
        ("command: [a]\ncluster: {worker: [a, b]}\nrestart: {together: false}", False),
        ("command: [a]\ncluster: {ps: [a], worker: [b]}", False),
        ("command: [a]\ncluster: {ps: [a], worker: [b]}\nrestart: {together: true}", True),
        ("job: digits\ncluster: {ps: [a], worker: [b]}", False),
        ("job: digits\ncluster: {ps: [a], worker: [b]}\nrestart: {together: true}", True),
    ],
)
def test_the_workers_of_a_program_without_ps_restart_together_unless_the_key_differs(
    read: Read, text: str, together: bool
) -> None:
    run = requests(plan_of(read(text)), CODE, "", {}, resume=False)["a" if "ps" not in text else "b"].run_plan
    assert run is not None and run.restart_together is together


def test_the_rules_of_supervision_have_their_keys(read: Read) -> None:
    text = "command: [a]\ncluster: {worker: [a, b]}\nsuccess: worker:1\ndeadline_s: 60\nrestart: {window_s: null}"
    run = requests(plan_of(read(text)), CODE, "", {}, resume=False)["a"].run_plan
    assert run is not None and (run.success, run.deadline_s, run.restart_window_s) == ("worker:1", 60, None)
    default = requests(plan_of(read("job: digits" + TWO)), CODE, "", {}, resume=False)["gpu01"].run_plan
    assert default is not None
    assert (default.success, default.deadline_s, default.restart_window_s) == (None, None, 86400)


@pytest.mark.parametrize("words", ["[a, '--dir={state_folder}']", "[a]"])
def test_the_lead_knows_whether_a_program_continues_from_its_state_folder(read: Read, words: str) -> None:
    run = requests(plan_of(read(f"command: {words}\ncluster: {{worker: [a]}}")), CODE, "", {}, False)["a"].run_plan
    assert run is not None and run.keeps_state is ("state_folder" in words)
