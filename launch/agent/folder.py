"""Where a run keeps its files on a host.

    WORKDIR/code/HASH/                  shipped code, by content; shared by all runs
    WORKDIR/locks/NAME@HOST.lock        held by the agent of a live run, gone with it
    WORKDIR/runs/RUN/
        checkpoint/                     on the chief's host
        ROLE.INDEX/attempt_N.log        stdout and stderr of the task's N-th attempt
        ROLE.INDEX/progress.json, outcome.json
        hosts/HOST/plan.json            what this agent was asked to run (mode 0600)
        hosts/HOST/agent.log, agent.sock
        hosts/HOST/agent.json, processes.json       the pids and start times of what runs here
        hosts/HOST/status.json          the newest summary; on the lead that of the whole run
        hosts/HOST/checkpoint/          copies of the chief's checkpoints, on hosts that keep some

HOST is the name in the hosts file, so that hosts that share a home folder do not
overwrite each other.
"""

import json
import os
import re
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

from launch.agent.agent_log import say_once

_STAMP = re.compile(r"-\d{8}-\d{6}$")


class RunFolder:
    """The files of one run as one host sees them."""

    def __init__(self, workdir: Path, run: str, host: str):
        self.workdir, self.run, self.host = workdir, run, host
        self.path = workdir / "runs" / run
        self.own = self.path / "hosts" / host
        self.checkpoint = self.path / "checkpoint"
        self.replica = self.own / "checkpoint"

    def task(self, name: str) -> Path:
        """The folder of ``worker:1``."""
        return self.path / name.replace(":", ".")

    def log(self, task: str, attempt: int) -> Path:
        """The log of one attempt of a task."""
        return self.task(task) / f"attempt_{attempt}.log"

    def logs(self, task: str) -> List[Path]:
        """The logs of a task, oldest attempt first."""
        return sorted(self.task(task).glob("attempt_*.log"), key=lambda path: int(path.stem.split("_")[1]))

    def create(self, again: bool = False) -> None:
        """Makes the run's folders, closed to other users; with ``again`` they may be there."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.own.mkdir(mode=0o700, parents=True, exist_ok=again)

    def write(self, name: str, values: Mapping[str, Any]) -> None:
        """Replaces one of this host's JSON files, readable by this user alone."""
        partial = self.own / f".{name}.partial"
        handle = os.open(str(partial), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as file:
            json.dump(values, file)
        os.replace(str(partial), str(self.own / name))

    def note(self, name: str, values: Mapping[str, Any]) -> bool:
        """Writes what a run can go on without: a full disk must not end its training. Whether it is written."""
        try:
            self.write(name, values)
        except OSError as error:
            say_once(f"cannot write {self.own / name}: {error.strerror}")
            return False
        return True

    def read(self, name: str) -> Optional[Dict[str, Any]]:
        """One of this host's JSON files, or None."""
        try:
            values: Dict[str, Any] = json.loads((self.own / name).read_text())
        except (FileNotFoundError, NotADirectoryError):
            return None
        return values


def expand(workdir: str) -> Path:
    """The working folder with ``~`` resolved, absolute."""
    return Path(os.path.abspath(os.path.expanduser(workdir)))


def lock_path(workdir: Path, name: str, host: str) -> Path:
    """The lock of a run's name on a host."""
    return workdir / "locks" / f"{name}@{host}.lock"


def runs(workdir: Path, name: str, host: str) -> List[RunFolder]:
    """The runs of this name that this host took part in, newest first."""
    folder = workdir / "runs"
    if not folder.is_dir():
        return []
    names = sorted(
        (p.name for p in folder.iterdir() if _STAMP.sub("", p.name) == name and p.name != name), reverse=True
    )
    found = [RunFolder(workdir, run, host) for run in names]
    return [run for run in found if run.own.is_dir()]


def every_run(workdir: Path) -> List[RunFolder]:
    """The runs of every name and of every host that shares the folder, newest first."""
    found = sorted((workdir / "runs").glob("*/hosts/*"), reverse=True)
    return [RunFolder(workdir, path.parent.parent.name, path.name) for path in found if path.is_dir()]


def newest(request: Mapping[str, Any]) -> Optional[RunFolder]:
    """The run that a request is about: the one it names, else the newest of its name; None where there is none."""
    workdir = expand(request["workdir"])
    if request.get("run"):
        folder = RunFolder(workdir, request["run"], request["host"])
        return folder if folder.own.is_dir() else None
    found = runs(workdir, request["name"], request["host"])
    return found[0] if found else None
