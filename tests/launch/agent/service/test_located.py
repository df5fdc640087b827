"""A request's placeholders become this host's paths, in values of their own."""

import json
from dataclasses import replace
from pathlib import Path

from launch.agent.service.located import folder_of, located
from launch.agent.tasks.task_env import own_variables
from launch.agent.wire.run_request import RunRequest
from tests.support.agent.requested import RUN, run_request, task_request

CODE = {"launcher": "1" * 16, "job": "2" * 16}
CLUSTER = '{"worker": ["a:1", "h:2222"]}'


def asked(workdir: Path) -> RunRequest:
    program = task_request(
        argv=("~/bin/train", "{code}/x", "{run_folder}", "{gpus}"), env={"PYTHONPATH": "{code}", "A": "{a}"}, index=1
    )
    job = task_request("worker:1", argv=("{environment}/bin/python", "-m", "jobs.main"), folder="launcher")
    return run_request(program, job, workdir=str(workdir), code=CODE, cluster=CLUSTER, environment="e1")


def test_tasks_start_in_this_host_s_folders_with_its_programs(tmp_path: Path) -> None:
    request = asked(tmp_path)
    program, job = located(request, folder_of(request)).tasks
    run = f"{tmp_path}/runs/{RUN}"
    assert program.argv == (f"{Path.home()}/bin/train", f"{run}/worker.0/work/x", run, "{gpus}")
    assert program.folder == f"{run}/worker.0/work"
    assert job.argv[0] == f"{tmp_path}/envs/e1/bin/python"
    assert job.folder == f"{tmp_path}/code/{'1' * 16}"
    assert (program.env["PYTHONPATH"], program.env["A"]) == (f"{run}/worker.0/work", "{a}")


def test_each_task_has_the_cluster_and_its_own_place_in_it_among_its_variables(tmp_path: Path) -> None:
    request = asked(tmp_path)
    config = json.loads(located(request, folder_of(request)).tasks[0].env["TF_CONFIG"])
    assert config == {"cluster": json.loads(CLUSTER), "task": {"type": "worker", "index": 1}}


def test_words_of_a_command_have_the_home_folder_of_the_host(tmp_path: Path) -> None:
    words = ("sh", "~/train.sh", "--data=~/data", "a~/b", "~")
    request = run_request(task_request(argv=words), workdir=str(tmp_path), code=CODE, cluster=CLUSTER)
    (program,) = located(request, folder_of(request)).tasks
    assert program.argv == ("sh", f"{Path.home()}/train.sh", f"--data={Path.home()}/data", "a~/b", "~")


def test_paths_of_the_launcher_stay_as_they_are_whatever_they_have(tmp_path: Path) -> None:
    request = asked(tmp_path / "a$HOME$(b)")
    folder = folder_of(request)
    (program, _) = located(request, folder).tasks
    env = own_variables(program.env, {}, 0, folder.path, [], {"HOME": "/h"})
    assert env["PYTHONPATH"] == f"{folder.task('worker:0')}/work"
    assert json.loads(env["TF_CONFIG"])["task"]["index"] == 1


def test_the_request_itself_stays_as_it_was(tmp_path: Path) -> None:
    request = asked(tmp_path)
    before = repr(request)
    after = located(request, folder_of(request))
    assert repr(request) == before
    assert replace(after, tasks=()) == replace(request, tasks=())
