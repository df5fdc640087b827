"""``launch diagnose`` on this machine: of a run that is up, and of one that is over, without its secrets."""

import json
import tarfile
from pathlib import Path
from typing import Dict

from tests.support.launch.launcher import Launcher
from tests.support.waiting import eventually

SECRET = "correct-horse-battery"
TALKS = "echo up $MINE --token $SOME_TOKEN; exec sleep 1000"
FAILS = f"echo up; echo 'password={SECRET}'; exit 3"


def members(path: Path) -> Dict[str, str]:
    """{name below the archive's folder: text}"""
    with tarfile.open(str(path)) as archive:
        found = {}
        for member in archive.getmembers():
            file = archive.extractfile(member)
            found[member.name.split("/", 1)[1]] = "" if file is None else file.read().decode()
        return found


def test_a_run_that_is_up_is_told_whole_and_goes_on_without_its_secrets_being_told(launch: Launcher) -> None:
    launch.write(TALKS, secrets=["MINE"], env={"all": {"SOME_TOKEN": "tok-" + SECRET}})
    assert launch("up", "-d", MINE=SECRET).returncode == 0
    eventually("the logs", lambda: all("up " in launch.log(task) for task in ("ps:0", "worker:0", "worker:1")))
    path = launch.folder / "x.tar.gz"
    ran = launch("diagnose", "-o", str(path), "--json")  # from a terminal that does not have the secret
    launch.end()
    assert (ran.returncode, ran.stderr) == (0, "")
    told = json.loads(ran.stdout)
    assert told["run"] == launch.run_folder().name and told["archive"] == str(path)
    found = members(path)
    assert SECRET not in "".join(found.values())
    assert found["hosts/localhost/tasks/worker.1/attempt_0.log"] == "up (secret) --token (secret)\n"
    assert f"{told['run']}, at " in found["summary.txt"] and "state: running" in found["summary.txt"]
    live = json.loads(found["hosts/localhost/live.json"])
    assert {each["task"] for each in live["processes"]} == {None, "ps:0", "worker:0", "worker:1"}


def test_a_run_that_failed_is_told_with_its_cause(launch: Launcher) -> None:
    launch.write(FAILS)
    assert launch("up").returncode == 1
    path = launch.folder / "x.tar.gz"
    ran = launch("diagnose", "-o", str(path))
    assert ran.returncode == 0 and "1 of 1 hosts answered" in ran.stdout
    found = members(path)
    assert "state: failed" in found["summary.txt"] and "exit code 3" in found["summary.txt"]
    assert SECRET not in "".join(found.values())


def test_an_archive_that_cannot_be_written_is_refused(launch: Launcher) -> None:
    launch.write()
    ran = launch("diagnose", "-o", "/nowhere/x.tar.gz")
    assert ran.returncode == 2 and "cannot write /nowhere/x.tar.gz: No such file or directory" in ran.stderr
