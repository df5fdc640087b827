"""What killed processes leave among the host's temporary files is gone when a run has left nothing."""

import json
import os
import signal
from pathlib import Path

import pytest

from tests.support.launch.launcher import Launcher

LITTERS = "echo x > $TMPDIR/tmpa1b2.py; echo $TMPDIR; echo up; sleep 1000 & wait"


@pytest.mark.parametrize("killed", ["a worker", "the agent", "agent and keeper"])
def test_temporary_files_of_killed_processes_are_gone_when_nothing_is_left(launch: Launcher, killed: str) -> None:
    launch.write(LITTERS, restart={"max": 3, "backoff_s": 0.1})
    assert launch("up", "-d").returncode == 0
    folders = [Path(launch.log(task).split("\n", 1)[0]) for task in ("ps:0", "worker:0", "worker:1")]
    assert len({*folders}) == 3 and all((folder / "tmpa1b2.py").exists() for folder in folders)
    record = json.loads((launch.run_folder() / "hosts" / "localhost" / "agent.json").read_text())
    pids = {
        "a worker": [launch.status()["tasks"][1]["pid"]],
        "the agent": [record["agent"]["pid"]],
        "agent and keeper": [record["keeper"]["pid"], record["agent"]["pid"]],
    }
    for pid in pids[killed]:
        os.kill(pid, signal.SIGKILL)
    assert launch("down").returncode == 0
    assert not [folder for folder in folders if folder.exists()] and launch.left() == []
    assert not list(launch.run_folder().glob("*/*.tmp"))
