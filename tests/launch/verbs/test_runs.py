"""An earlier run is listed, and every verb can mean it by its name, also where the file has changed since."""

import json
from typing import Any

from tests.launch.agent.verbs.test_runs import make_run
from tests.support.launch.launcher import Launcher


def told(launch: Launcher, *arguments: str) -> Any:
    """The object that a verb prints."""
    ended = launch(*arguments, "--json")
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_an_earlier_run_is_listed_and_meant_by_its_name(launch: Launcher) -> None:
    launch.write("echo first; test {role}:{index} = worker:1 && exit 3; sleep 100")
    assert launch("up").returncode == 1
    launch.write("test {role} = ps && sleep 100; echo second", cluster={"ps": ["localhost"], "worker": ["localhost"]})
    again = launch("up")
    assert again.returncode == 0, again.stderr
    newest, first = told(launch, "runs")["runs"]
    assert (newest["state"], first["state"], first["incidents"]) == ("succeeded", "failed", 1)
    assert "exit code 3" in first["cause"] and "@" in first["user"] and first["started"] <= first["ended"]
    run = first["run"]
    assert told(launch, "status", "--run", run)["run"] == run != told(launch, "status")["run"]
    logs = launch("logs", "--raw", "--run", run, "worker:1").stdout  # of which the file knows nothing any more
    assert logs == "worker:1@localhost first\n"
    assert run in launch("report", "--run", run).stdout
    assert f"{run}: nothing was there" in launch("down", "--run", run).stdout
    assert run in launch("runs").stdout
    both = launch("runs", "--compare", run, newest["run"])
    assert both.returncode == 0 and both.stdout.startswith("no curve") and "succeeded" in both.stdout
    assert told(launch, "runs", "--compare", run, newest["run"])["runs"][0]["history"]["step"] == []
    refused = launch("runs", "--compare", run, "another")
    assert refused.returncode == 2 and "--compare: expected a run on localhost, found 'another'" in refused.stderr


def test_any_file_with_the_same_hosts_lists_the_runs(launch: Launcher) -> None:
    make_run(launch.workdir, "another-20261120-120000", 1, host="localhost", lead="localhost")
    launch.write("a script of another program")
    assert [each["run"] for each in told(launch, "runs")["runs"]] == ["another-20261120-120000"]


def test_a_name_that_is_none_is_refused_with_the_nearest(launch: Launcher) -> None:
    launch.write()
    assert launch("up").returncode == 0
    (run,) = told(launch, "runs")["runs"]
    for verb in ("status", "logs", "down", "diagnose", "board", "metrics"):
        refused = launch(verb, "--run", run["run"][:-1])
        assert refused.returncode == 2 and f"the nearest names: {run['run']}" in refused.stderr
    assert "expected --resume together with --run" in launch("up", "--run", run["run"]).stderr


def test_a_run_with_local_is_found_by_its_name_alone(launch: Launcher) -> None:
    launch.write()
    assert launch("up", "--local").returncode == 0
    (here,) = told(launch, "runs", "--local")["runs"]
    assert launch("up").returncode == 0
    assert [each["run"] for each in told(launch, "runs")["runs"]] != [here["run"]]
    assert told(launch, "status", "--run", here["run"])["run"] == here["run"]
