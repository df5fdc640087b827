"""A run that was begun with ``--local`` is on this machine for every later verb, with ``--local`` or without."""

import json

import pytest

from tests.support.launch.launcher import Launcher

CLUSTER = {"ps": ["gpu01.invalid"], "worker": ["gpu02.invalid", "gpu03.invalid"]}  # which nobody can reach
SAID = "is on this machine, started with --local; --no-local asks the hosts of the file"


@pytest.fixture
def up(launch: Launcher) -> Launcher:
    """A run of remote hosts on this machine."""
    launch.stay(cluster=CLUSTER, ssh={"connect_timeout_s": 1})
    ran = launch("up", "-d", "--local")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return launch


def test_verbs_without_local_mean_the_run_on_this_machine_and_say_so(up: Launcher) -> None:
    run = up.run_folder().name
    status = up("status", "--json")
    assert (json.loads(status.stdout)["state"], status.stderr) == ("running", f"{run} {SAID}\n")
    assert "worker:1@gpu03.invalid up" in up("logs", "worker:1").stdout
    assert up("restart", "worker:1").returncode == 0
    down = up("down")
    assert (down.returncode, up.left()) == (0, []) and SAID in down.stderr
    assert json.loads(up("status", "--json").stdout)["state"] == "stopped"
    assert up("sweep").returncode == 0


def test_no_local_asks_the_hosts_of_the_file(up: Launcher) -> None:
    status = up("status", "--no-local")
    assert status.returncode == 3 and "gpu02.invalid" in status.stderr and SAID not in status.stderr
    assert up("down").returncode == 0


def test_a_run_on_the_hosts_of_the_file_takes_its_place(launch: Launcher) -> None:
    launch.write("test {role} = ps && exec sleep 1000; exit 0")
    assert launch("up", "--local").returncode == 0 and SAID in launch("status").stderr
    assert launch("up").returncode == 0 and SAID not in launch("status").stderr


def test_where_the_files_of_the_run_are_gone_it_is_forgotten(launch: Launcher) -> None:
    launch.write("test {role} = ps && exec sleep 1000; exit 0")
    assert launch("up", "--local").returncode == 0
    launch.run_folder().rename(launch.folder / "gone")
    assert SAID not in launch("status").stderr
