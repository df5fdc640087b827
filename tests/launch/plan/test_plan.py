"""What a hosts file becomes: argv and environment of every task, decided without reaching a host."""

import json
from datetime import datetime
from typing import Any, Dict, Optional, Tuple

import pytest

from cluster.protocol.command_template import fill
from cluster.protocol.settings import Limits
from launch.agent.wire.run_request import TaskRequest
from launch.errors import UsageError
from launch.hosts.bundle import JobCode
from launch.plan.agent_requests import requests
from launch.plan.local_spec import localised
from launch.plan.outlook import shown_tasks
from launch.plan.plan import Plan, make_plan, refuse_oversized, run_name
from tests.launch.plan.plans import CODE, OWN, RUN, TWO, Read, plan_of

COMMAND = """
command: ["{python}", train.py, "--job={role}:{index}", "--ps={ps_hosts}", "--workers={worker_hosts}", "{chief_hosts}"]
"""


def named(plan: Plan) -> Dict[str, TaskRequest]:
    return {task.name: task for task in plan.tasks}


# -- argv


def test_a_job_is_run_by_the_projects_own_entry_with_its_settings_as_json(read: Read) -> None:
    task = named(plan_of(read("job: digits\nargs: {hidden: 128}\ntrain: {steps: 70}" + TWO)))["worker:1"]
    assert task.argv[:5] == ("python3.7", "-m", "jobs.main", "{code}/digits.py", "--train")
    assert json.loads(task.argv[5])["steps"] == 70
    assert json.loads(task.argv[5])["checkpoint"] == {
        "dir": None, "every_s": 60, "keep": 5, "replicas": 0, "delta_every_s": None,
    }  # fmt: skip
    assert (task.argv[6], json.loads(task.argv[7])) == ("--args", {"hidden": 128})
    assert task.folder == "launcher"


def test_braces_in_the_arguments_of_a_job_are_its_own(read: Read) -> None:
    task = plan_of(read("job: digits\nargs: {pattern: '{run_folder}/{code}', nested: {gpus: '{}'}}" + TWO)).tasks[0]
    filled = fill(task.argv[7], {"run_folder": "/w/runs/r-1", "code": "/w/code/1", "gpus": "2"})
    assert json.loads(filled) == {"pattern": "{run_folder}/{code}", "nested": {"gpus": "{}"}}


def test_a_dotted_module_that_is_shipped_is_found_on_the_python_path(read: Read) -> None:
    task = plan_of(read("job: mine.train" + TWO), entry="mine.train").tasks[0]
    assert task.argv[3] == "mine.train"
    assert task.env["PYTHONPATH"] == "{code}"


def test_a_dotted_module_of_the_hosts_own_is_imported_as_it_is(read: Read) -> None:
    task = make_plan(read("job: mine.train" + TWO), JobCode(None, "mine.train"), RUN, OWN).tasks[0]
    assert task.argv[3] == "mine.train" and "PYTHONPATH" not in task.env


def test_placeholders_of_a_command_are_filled_for_each_task(read: Read) -> None:
    task = named(plan_of(read(COMMAND + TWO)))["worker:1"]
    assert task.argv == (
        "python3.7", "train.py", "--job=worker:1", "--ps=cpu01:2222,cpu02:2222", "--workers=gpu01:2300,gpu02:2300", "",
    )  # fmt: skip
    assert task.folder == "job"


def test_braces_that_are_no_placeholder_stay(read: Read) -> None:
    spec = read("""command: [sh, -c, 'echo ${role} {} { role } {"a": 1}']""" + TWO)
    assert plan_of(spec).tasks[0].argv[2] == 'echo ${role} {} { role } {"a": 1}'


def test_a_task_can_be_told_its_own_address_its_run_and_what_only_its_host_knows(read: Read) -> None:
    plan = plan_of(read('command: ["{address}", "{port}", "{run}", "{run_folder}/model", "{gpus}"]' + TWO))
    assert named(plan)["worker:1"].argv == ("gpu02:2300", "2300", RUN, "{run_folder}/model", "{gpus}")
    words = next(shown_tasks(plan, {"worker:1"})).argv
    assert words == ["gpu02:2300", "2300", RUN, f"~/.launch/runs/{RUN}/model", "2"]


@pytest.mark.parametrize(
    ("roles", "words"),
    [
        ("", ("2", "2", "gpu01:2300")),
        ("  chief: [gpu09]\n", ("2", "2", "gpu09:2222")),
    ],
)
def test_a_task_can_be_told_how_many_there_are_and_where_the_first_is(
    read: Read, roles: str, words: Tuple[str, ...]
) -> None:
    plan = plan_of(read('command: ["{num_ps}", "{num_workers}", "{chief_address}"]' + TWO + roles))
    assert {task.argv for task in plan.tasks} == {words}


def test_each_role_may_have_a_command_of_its_own(read: Read) -> None:
    command = 'command: {ps: [serve, "{index}"], chief: [lead, "--workers={worker_hosts}"], worker: [work, "{index}"]}'
    tasks = named(plan_of(read(command + TWO + "  chief: [gpu09]\n")))
    assert tasks["ps:1"].argv == ("serve", "1")
    assert tasks["chief:0"].argv == ("lead", "--workers=gpu01:2300,gpu02:2300")
    assert tasks["worker:1"].argv == ("work", "1")


def test_without_a_ps_there_are_none_of_them(read: Read) -> None:
    plan = plan_of(read('command: ["{num_ps}/{num_workers}", "{ps_hosts}"]\ncluster: {worker: ["gpu[1-3]"]}'))
    assert plan.tasks[0].argv == ("0/3", "")


# -- environment


def test_every_task_gets_the_cluster_and_itself_as_tensorflow_wants_them(read: Read) -> None:
    spec = read(COMMAND + TWO + "  chief: [gpu09]\n  evaluator: [gpu08]\n")
    plan = plan_of(spec)
    tasks = named(plan)
    config = json.loads(plan.environment(tasks["worker:1"])["TF_CONFIG"])
    assert config["task"] == {"type": "worker", "index": 1}
    assert config["cluster"] == {
        "ps": ["cpu01:2222", "cpu02:2222"], "chief": ["gpu09:2222"], "worker": ["gpu01:2300", "gpu02:2300"],
    }  # fmt: skip
    assert json.loads(plan.environment(tasks["evaluator:0"])["TF_CONFIG"])["task"] == {"type": "evaluator", "index": 0}


def test_the_launchers_own_variables_and_the_files_are_there(read: Read) -> None:
    spec = read(COMMAND + TWO + "env: {all: {A: 1, B: 2}, worker: {B: 3}}\nlimits: {ps: {nofile: 99}}")
    tasks = named(plan_of(spec))
    env = tasks["worker:0"].env
    assert (env["LAUNCH_RUN"], env["LAUNCH_ATTEMPT"], env["PYTHONUNBUFFERED"]) == (RUN, "0", "1")
    assert (env["A"], env["B"], tasks["ps:0"].env["B"]) == ("1", "3", "2")
    assert (tasks["ps:0"].limits, tasks["worker:0"].limits) == (Limits(nofile=99), None)
    assert (env["CUDA_VISIBLE_DEVICES"], tasks["ps:0"].env["CUDA_VISIBLE_DEVICES"]) == ("0,1", "")


def test_a_jobs_ps_asks_for_large_pages_unless_the_file_sets_that_variable(read: Read) -> None:
    def settings(text: str) -> Dict[str, Optional[str]]:
        return {name: task.env.get("GLIBC_TUNABLES") for name, task in named(plan_of(read(text + TWO))).items()}

    asked = {"ps:0": "glibc.malloc.hugetlb=1", "ps:1": "glibc.malloc.hugetlb=1"}
    assert settings("job: digits\n") == {**dict.fromkeys(settings("job: digits\n")), **asked}
    assert set(settings("job: digits\nenv: {ps: {GLIBC_TUNABLES: a=1}}\n").values()) == {"a=1", None}
    assert set(settings(COMMAND).values()) == {None}


# -- hosts


def test_a_run_is_named_after_its_start() -> None:
    assert run_name("digits", datetime(2026, 11, 20, 15, 59, 2)) == "digits-20261120-155902"


def test_the_chiefs_host_leads_and_members_dial_the_first_port_above_its_tasks(read: Read) -> None:
    plan = plan_of(read(COMMAND + TWO))
    assert plan.hosts == ("gpu01", "cpu01", "cpu02", "gpu02")
    assert (plan.lead, plan.control) == ("gpu01", "gpu01:2301")
    assert [task.name for task in plan.tasks if task.chief] == ["worker:0"]


def test_members_dial_the_address_of_the_chief_not_the_name_that_ssh_uses(read: Read) -> None:
    text = "cluster: {worker: [{host: gpu01, address: 10.0.0.1, port: 2300}, gpu02]}"
    assert plan_of(read("command: [a]\n" + text)).control == "10.0.0.1:2301"


def test_an_address_of_ipv6_keeps_its_brackets(read: Read) -> None:
    plan = plan_of(read('command: [a]\ncluster: {worker: [{host: gpu01, address: "fd00::1", port: 2300}, gpu02]}'))
    assert plan.control == "[fd00::1]:2301"


def test_one_host_needs_no_control_port(read: Read) -> None:
    assert plan_of(read("command: [a]\ncluster: {worker: [gpu01, gpu01]}")).control is None


def test_the_launchers_own_python_runs_what_is_here_and_the_default_what_is_not(read: Read) -> None:
    assert plan_of(read("command: [a]\ncluster: {worker: [localhost]}")).python == {"localhost": OWN}
    assert plan_of(read("command: [a]\ncluster: {worker: [gpu01]}")).python == {"gpu01": "python3.7"}


def test_a_python_of_the_entry_wins_over_the_files(read: Read) -> None:
    spec = read("command: [a]\npython: /a\ncluster: {ps: [cpu01], worker: [{host: gpu01, python: /b}]}")
    assert plan_of(spec).python == {"gpu01": "/b", "cpu01": "/a"}


def test_two_pythons_for_one_host_are_refused(read: Read) -> None:
    spec = read("command: [a]\ncluster: {worker: [{host: g, python: /b}, {host: g, python: /a}]}")
    with pytest.raises(UsageError, match=r"^g: expected one python for all tasks of a host, found /a and /b$"):
        plan_of(spec)


# -- --local


def test_localised_no_task_is_bound_to_processors_which_tasks_of_other_hosts_have_too(read: Read) -> None:
    limits = "limits: {all: {processors: 2, numa_node: 1, memory_gib: 3}}"
    plan = plan_of(localised(read(COMMAND + TWO + limits), [11, 12, 13, 14]))
    assert {task.limits for task in plan.tasks} == {Limits(memory_gib=3)}


def test_localised_every_task_is_here_on_the_ports_that_are_free(read: Read) -> None:
    spec = localised(read(COMMAND + TWO + "python: /cluster/python"), [11, 12, 13, 14], [21, 22, 23, 24])
    plan = plan_of(spec)
    assert [task.address for task in plan.tasks] == [f"localhost:{port}" for port in (11, 12, 13, 14)]
    assert plan.python == dict.fromkeys(("gpu01", "cpu01", "cpu02", "gpu02"), OWN)
    assert (plan.lead, plan.control) == ("gpu01", "localhost:23")
    assert (spec.workdir, spec.local_workdir) == ("~/.launch/local", "~/.launch/local")
    assert {task.env["CUDA_VISIBLE_DEVICES"] for task in plan.tasks} == {""}


@pytest.mark.parametrize(
    ("gpus", "towers", "local"),
    [("[0, 1]", "auto", 2), ("none", "auto", 1), ("all", "auto", "auto"), ("[0, 1]", "3", 3)],
)
def test_localised_a_worker_has_as_many_towers_as_it_has_gpus(read: Read, gpus: str, towers: str, local: Any) -> None:
    text = f"job: digits\ntrain: {{towers: {towers}}}\ncluster: {{ps: [c], worker: [{{host: g, gpus: {gpus}}}]}}"
    assert localised(read(text), [1, 2]).train.towers == local


# -- what Linux takes


def test_a_cluster_that_linux_can_tell_to_no_process_is_refused_before_anything_starts(read: Read) -> None:
    plan = plan_of(read("command: [a]\ncluster: {worker: ['gpu[00001-09000]']}"))
    found = r"found \d+,\d+ for 9,000 tasks; use fewer tasks, or shorter host names$"
    with pytest.raises(UsageError, match=rf"TF_CONFIG: expected at most 131,071 bytes, .*{found}"):
        refuse_oversized(plan)


def test_an_argument_that_linux_can_tell_to_no_process_is_refused(read: Read) -> None:
    plan = plan_of(read('command: [a, "{worker_hosts} {worker_hosts}"]\ncluster: {worker: ["gpu[00001-06000]"]}'))
    with pytest.raises(UsageError, match=r"argument 1: expected at most 131,071 bytes"):
        refuse_oversized(plan)


# -- an environment of its own


def test_with_the_key_setup_tasks_run_in_the_environment_and_agents_in_the_python_it_is_built_on(read: Read) -> None:
    plan = plan_of(read(COMMAND + TWO + "setup: {}\n"))
    digest = plan.environments["gpu01"]
    assert plan.python["gpu01"] == "python3.7"
    assert plan.tasks[0].argv[0] == "{environment}/bin/python"  # the host knows where its working folder is
    request = requests(plan, CODE, "token", {}, resume=False)["gpu01"]
    assert (request.environment, request.setup) == (digest, f"launch setup {plan.spec.path}")
    assert next(shown_tasks(plan, {"ps:0"})).argv[0] == f"~/.launch/envs/{digest}/bin/python"


def test_a_run_on_this_machine_alone_needs_no_setup(read: Read) -> None:
    spec = localised(read(COMMAND + TWO + "setup: {}\n"), [1, 2, 3, 4])
    assert plan_of(spec).tasks[0].argv[0] == OWN
