"""``launch check`` on this machine, as a user runs it: the exit code, one JSON object, and nothing left."""

import json
import socket
from pathlib import Path
from typing import Dict, List

import pytest

from tests.support.launch.launcher import Launcher


@pytest.fixture(autouse=True)
def quick(tmp_path: Path) -> Dict[str, str]:
    """Variables with which a TensorFlow loads at once."""
    (tmp_path / "tensorflow.py").write_text("__version__ = '9.9'")
    return {"PYTHONPATH": str(tmp_path)}


def kinds(launch: Launcher) -> List[str]:
    ran = launch("check", "--json")
    assert ran.returncode == 4, ran.stderr
    return [finding["kind"] for finding in json.loads(ran.stdout)["findings"]]


def test_a_machine_on_which_all_is_well_is_ok_and_nothing_of_the_check_stays(
    launch: Launcher, quick: Dict[str, str]
) -> None:
    launch.write(env={"all": quick})
    ran = launch("check", "--json")
    values = json.loads(ran.stdout)
    assert (ran.returncode, values["ok"], ran.stderr) == (0, True, "")
    assert values["hosts"][0]["tensorflow"] == "9.9"
    assert launch.left() == []
    for port in launch.ports:
        with socket.socket() as strict:
            strict.bind(("", port))


def test_with_local_the_same_is_checked_on_free_ports(launch: Launcher, quick: Dict[str, str]) -> None:
    launch.write(env={"all": quick}, cluster={"ps": ["far"], "worker": ["away[1-2]"]})
    ran = launch("check", "--local")
    assert ran.returncode == 0, ran.stdout
    assert ran.stdout.splitlines()[-1].startswith("healthy: away[1-2],far (3 of 3 hosts)")


def test_everything_that_is_wrong_is_found_at_once(launch: Launcher, quick: Dict[str, str]) -> None:
    launch.write(env={"all": quick}, command=["no-such-program"], workdir="/proc/1/launch")
    assert kinds(launch) == ["disk"]  # the code cannot be put there
    launch.write(env={"all": quick}, command=["no-such-program"])
    with socket.socket() as taker:
        taker.bind(("", launch.ports[0]))
        taker.listen(1)
        assert kinds(launch) == ["program", "port"]


def test_a_run_that_is_up_is_named_and_its_ports_are_its_own(launch: Launcher, quick: Dict[str, str]) -> None:
    launch.stay(env={"all": quick})
    assert launch("up", "-d").returncode == 0
    try:
        assert kinds(launch) == ["run-up"]
    finally:
        launch.end()


def test_a_file_that_is_wrong_is_no_finding(launch: Launcher) -> None:
    launch.write(cluster={"ps": ["localhost"], "worker": ["a"]})
    ran = launch("check")
    assert ran.returncode == 2
    assert "expected an address that the other hosts can reach" in ran.stderr
