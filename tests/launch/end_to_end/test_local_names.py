"""After ``up --local`` of a file of three hosts every verb finds the run by itself, with the names of the file."""

import json
import os
import re
import signal
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import pytest

from launch import cli
from launch.agent.state import process_records
from launch.agent.state.run_folder import RunFolder
from tests.launch.monitoring.web import fetch, served
from tests.support.launch.launcher import Launcher
from tests.support.waiting import eventually

HOSTS = ["gpu01", "gpu02", "gpu03"]
CLUSTER = {"ps": ["gpu01"], "worker": ["gpu02", "gpu03"]}
# Each verb about a run, with its arguments; those that serve until Ctrl-C; and those that mean a run yet to start.
ABOUT_A_RUN: Dict[str, Tuple[str, ...]] = {
    "status": (), "logs": (), "report": (), "sweep": (), "diagnose": ("--json",), "restart": ("gpu03",),
}  # fmt: skip
SERVES = {"view": "status.json", "metrics": ""}
PREPARES = {"up", "run", "plan", "check", "verify", "setup"}
ELSEWHERE = {"down", "board", "export", "drain", "runs", "prune", "manifest", "grid"}  # below; and what names no host


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    """A run of three hosts that nobody can reach, on this machine."""
    launch = Launcher(tmp_path_factory.mktemp("local"))
    begin(launch)
    yield launch
    assert launch("down", "--local").returncode == 0


def begin(launch: Launcher) -> None:
    launch.stay(cluster=CLUSTER, ssh={"connect_timeout_s": 1})
    ran = launch("up", "-d", "--local")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    eventually("all up", launch.all_up)


def left_of(launch: Launcher, host: str) -> List[int]:
    """The processes that are left of a host's tasks."""
    folder = RunFolder(launch.workdir / "local", launch.run_folder().name, host)
    return [process.pid for process in process_records.tasks_of(folder)]


def kill_agents(launch: Launcher, host: str) -> None:
    """Kill a host's keeper and then its agent, so that neither ends what the tasks leave."""
    folder = RunFolder(launch.workdir / "local", launch.run_folder().name, host)
    for process in reversed(process_records.agent_of(folder)):
        os.kill(process.pid, signal.SIGKILL)
    eventually("the end of the task", lambda: len(left_of(launch, host)) == 1)


def unnamed(text: str) -> List[str]:
    """The hosts of the file that a text does not name; and localhost, where that is not part of an address."""
    plain = text.replace("gpu[01-03]", " ".join(HOSTS))
    return [name for name in HOSTS if name not in plain] + re.findall(r"localhost(?!:\d)", plain)


def test_every_verb_of_a_file_has_its_place_here() -> None:
    of_a_file = {name for name, verb in cli.verbs().items() if "local" in {each.name for each in verb.params}}
    assert of_a_file == {*ABOUT_A_RUN, *SERVES, *PREPARES, *ELSEWHERE}


@pytest.mark.parametrize("verb", sorted(set(ABOUT_A_RUN) - {"restart", "diagnose"}))
def test_a_verb_about_a_run_names_the_hosts_of_the_file(up: Launcher, verb: str) -> None:
    ran = up(verb, *ABOUT_A_RUN[verb])
    assert ran.returncode == 0, ran.stderr
    assert unnamed(ran.stdout) == []
    assert "is on this machine, started with --local" in ran.stderr


@pytest.mark.parametrize("verb", ["status", "sweep"])
def test_so_does_its_object(up: Launcher, verb: str) -> None:
    values: Dict[str, Any] = json.loads(up(verb, "--json").stdout)
    assert sorted(each["host"] for each in values["tasks" if verb == "status" else "hosts"]) == HOSTS


def test_the_archive_has_a_folder_for_each_host(up: Launcher, tmp_path: Path) -> None:
    ran = up("diagnose", *ABOUT_A_RUN["diagnose"], "-o", str(tmp_path / "d.tgz"))
    assert ran.returncode in (0, 4), ran.stderr  # it may find that the machine is busy
    assert unnamed(ran.stdout) == []


@pytest.mark.parametrize("verb", sorted(SERVES))
def test_what_a_verb_serves_names_them(up: Launcher, verb: str) -> None:
    with served(up.begin(verb, "--port", "0")) as url:
        assert unnamed(fetch(url + SERVES[verb])) == []


def test_a_host_of_the_file_chooses_its_tasks(up: Launcher) -> None:
    lines = up("logs", "gpu02").stdout.splitlines()
    assert lines and all(line.startswith("worker:0@gpu02 ") for line in lines)
    assert up("restart", *ABOUT_A_RUN["restart"]).stdout.startswith("worker:1 is up again")
    hosts = json.loads(up("sweep", "--json", "--include", "gpu0[2-3]").stdout)["hosts"]
    assert sorted((each["host"], len(each["running"])) for each in hosts) == [("gpu02", 1), ("gpu03", 1)]
    refused = up("logs", "localhost")
    assert refused.returncode == 2 and "gpu01, gpu02, gpu03" in refused.stderr


@pytest.mark.parametrize("verb", ["plan", "check"])
def test_a_verb_that_prepares_one_names_them_too(up: Launcher, verb: str) -> None:
    ran = up(verb, "--local")
    assert unnamed(ran.stdout) == [] and "SSH" not in ran.stdout


def test_down_proves_for_each_host_that_nothing_is_left(launch: Launcher) -> None:
    begin(launch)
    values = json.loads(launch("down", "--json").stdout)
    assert values["clean"] and sorted(each["host"] for each in values["hosts"]) == HOSTS
    for each in values["hosts"]:
        assert len(each["ended"]["processes"]) >= 3 and len(each["ended"]["locks"]) == 2, each  # agent, keeper, task
    assert launch.left() == []


def test_sweep_finds_what_a_host_has_left_on_that_host_alone(launch: Launcher) -> None:
    begin(launch)
    for host in HOSTS:
        kill_agents(launch, host)
    pids = {host: left_of(launch, host) for host in HOSTS}
    values = json.loads(launch("sweep", "--json", "--kill").stdout)
    assert values["clean"]
    found = {
        each["host"]: [one["pid"] for run in each["found"] for one in run["processes"]] for each in values["hosts"]
    }
    assert found == pids and launch.left() == []


# -- a run on this machine, and one on the hosts of the file


def test_the_newest_run_is_taken_and_one_that_is_up_here_is_named(launch: Launcher) -> None:
    launch.stay()
    assert launch("up", "-d", "--local").returncode == 0
    here, began = launch.run_folder().name, int(time.time())
    eventually("another second, for another name", lambda: int(time.time()) > began)
    assert launch("up", "-d").returncode == 0
    try:
        status = launch("status", "--json")
        later = json.loads(status.stdout)["run"]
        assert later != here
        assert status.stderr == (
            f"this verb uses {later}, on the hosts of the file;"
            f" --local selects {here}, which is still up on this machine\n"
        )
        assert json.loads(launch("status", "--local", "--json").stdout)["run"] == here
    finally:
        assert launch("down", "--local").returncode == 0
        ran = launch("down")
    assert (ran.returncode, ran.stderr, launch.left()) == (0, "", [])


# -- Python


def test_another_python_of_the_file_is_named_and_one_of_the_command_line_is_used(launch: Launcher) -> None:
    launch.write("exit 0", cluster=CLUSTER, python="/cluster/python")
    planned = launch("plan", "--local", "--json")
    said = r"--local: tasks run on the launcher's own Python, .*; .*hosts.yaml names /cluster/python for its hosts; .*"
    assert re.fullmatch(said, planned.stderr.strip())
    chosen = launch("plan", "--local", "--set", "python=/usr/bin/python3")
    assert chosen.stderr == "" and "/usr/bin/python3" in chosen.stdout
