"""Verbs about part of a file: the same selection finds the same run again."""

import json
from typing import Tuple

import pytest

from tests.support.launch.launcher import Launcher


def names(launch: Launcher, verb: str, *arguments: str) -> str:
    tasks = json.loads(launch(verb, "--json", *arguments).stdout)["tasks"]
    return " ".join(f"{task['role']}:{task['index']}@{task['address'].split(':')[1]}" for task in tasks)


def test_plan_shows_the_tasks_that_are_left(launch: Launcher) -> None:
    launch.stay()
    ps, _, last = launch.ports
    assert names(launch, "plan", "--exclude", "worker:0") == f"ps:0@{ps} worker:0@{last}"


def test_a_run_of_part_of_a_file_is_found_and_ended_with_the_same_selection(launch: Launcher) -> None:
    launch.stay()
    up = launch("up", "-d", "--exclude", "worker:0")
    assert up.returncode == 0, up.stderr
    assert f"`launch down --exclude worker:0 {launch.file}`" in up.stdout
    assert names(launch, "status", "--exclude", "worker:0") == "ps:0@{} worker:0@{}".format(*launch.ports[::2])
    assert launch("down", "--exclude", "worker:0").returncode == 0
    assert launch.left() == []


def test_a_selection_that_leaves_too_little_is_a_mistake_of_the_command_line(launch: Launcher) -> None:
    launch.stay()
    for verb in ("up", "plan", "status", "down", "logs"):
        refused = launch(verb, "--exclude", "ps:*")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "expected at least one ps to be left" in refused.stderr


def test_setup_of_hosts_that_make_no_cluster_is_no_mistake(launch: Launcher) -> None:
    launch.stay()
    assert "expected the key setup" in launch("setup", "--include", "worker:*").stderr
    assert "expected at least one host to be left" in launch("setup", "--exclude", "localhost").stderr


@pytest.mark.parametrize("place", [(), ("--local",)])
def test_a_sweep_of_hosts_that_make_no_cluster_is_no_mistake(launch: Launcher, place: Tuple[str, ...]) -> None:
    launch.stay()
    swept = launch("sweep", "--include", "ps:*", *place)
    assert (swept.returncode, swept.stderr) == (0, "")
    assert "localhost: " in swept.stdout
