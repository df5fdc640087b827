"""The paths of a run's files on a host.

    WORKDIR/code/HASH/                  shipped code, by content; shared by all runs
    WORKDIR/locks/NAME@HOST.lock        held by the agent of a live run, removed at its end
    WORKDIR/runs/RUN/
        checkpoint/                     on the chief's host
        ROLE.INDEX/work/                with ``folder: task`` the task's working folder: see work_folder.py
        ROLE.INDEX/attempt_N.log        stdout and stderr of the task's N-th attempt
        ROLE.INDEX/attempt_N.tmp        a link to the attempt's folder for temporary files, while that exists
        ROLE.INDEX/progress.json, outcome.json
        ROLE.INDEX/progress.jsonl       lines that a program under ``command:`` may write
        hosts/HOST/plan.json            the request to this agent (mode 0600)
        hosts/HOST/generation.json      a number above the numbers of all earlier runs of this name
        hosts/HOST/work/                with ``folder: run`` the working folder of the host's tasks
        hosts/HOST/agent.log, agent.sock
        hosts/HOST/detached.json        on the lead, once the launcher has detached from the run
        hosts/HOST/agent.json, processes.json       the pids and start times of processes here
        hosts/HOST/status.json          the newest summary; on the lead, of the whole run
        hosts/HOST/attempts.json        on the lead: the newest attempt of each task that was ordered to start
        hosts/HOST/ended_for_good.json  the command by which a user has ended the run; no successor begins
        hosts/HOST/after.json           the errors of the commands of the key ``after``
        hosts/HOST/checkpoint/          copies of the chief's checkpoints, on hosts that keep copies

HOST is the name in the hosts file, so hosts that share a home folder do not overwrite each other's files.
"""

import json
import os
import re
import stat
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Type, TypeVar

from cluster.protocol.settings import RUN_FOLDER
from cluster.protocol.typed_json import from_values
from launch.agent.state.log import say_once

T = TypeVar("T")
_STAMP = re.compile(r"-\d{8}-\d{6}$")


class RunFolder:
    """The files of one run as one host sees them."""

    def __init__(self, workdir: Path, run: str, host: str):
        self.workdir, self.run, self.host = workdir, run, host
        self.path = workdir / "runs" / run
        self.own = self.path / "hosts" / host
        self.checkpoint = self.path / "checkpoint"
        self.replica = self.own / "checkpoint"
        self._tasks: Dict[str, Path] = {}  # an agent needs these paths many times a second

    def task(self, name: str) -> Path:
        """Return the folder of a task, such as ``worker:1``."""
        if name not in self._tasks:
            self._tasks[name] = self.path / name.replace(":", ".")
        return self._tasks[name]

    def home(self, kind: str, task: str) -> Path:
        """Return the folder that contains a task's working folder; ``kind`` is the value of the key ``folder``."""
        return self.own if kind == RUN_FOLDER else self.task(task)

    def log(self, task: str, attempt: int) -> Path:
        """Return the path of the log of one attempt of a task."""
        return self.task(task) / f"attempt_{attempt}.log"

    def logs(self, task: str) -> List[Path]:
        """Return the logs of a task, oldest attempt first."""
        found = [path for path in self.task(task).glob("attempt_*.log") if _is_log(path)]
        return sorted(found, key=attempt_of)

    def create(self, again: bool = False) -> None:
        """Create the run's folders, unreadable for other users; with ``again`` the folders may exist."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.own.mkdir(mode=0o700, parents=True, exist_ok=again)

    def write(self, name: str, values: Mapping[str, Any], durable: bool = False) -> None:
        """Write one of this host's JSON files, readable only by this user; a ``durable`` file survives a power cut."""
        partial = self.own / f".{name}.partial"
        handle = os.open(str(partial), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(json.dumps(values))  # in one piece, which is also faster than ``json.dump``
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(str(partial), str(self.own / name))
        if durable:
            _sync(self.own)

    def note(self, name: str, values: Mapping[str, Any], durable: bool = False) -> bool:
        """Write a JSON file without which the run can continue; return whether the file is written.

        A full disk must not end the run's training.
        """
        try:
            self.write(name, values, durable)
        except OSError as error:
            say_once(f"cannot write {self.own / name}: {error.strerror}")
            return False
        return True

    def read(self, name: str) -> Optional[Dict[str, Any]]:
        """Return the values in one of this host's JSON files; None where the file does not exist.

        Raises:
          OSError, ValueError: the file cannot be read, or is no JSON.
        """
        try:
            values: Dict[str, Any] = json.loads((self.own / name).read_text())
        except (FileNotFoundError, NotADirectoryError):
            return None
        return values

    def read_whole(self, name: str) -> Optional[Dict[str, Any]]:
        """Return the values in one of this host's JSON files; None where the file is missing, unreadable or damaged."""
        try:
            values = self.read(name)
        except (OSError, ValueError):
            return None
        return values if isinstance(values, dict) else None

    def read_record(self, name: str, kind: Type[T]) -> Optional[T]:
        """Return one of this host's JSON files as a dataclass; None if it is missing, damaged or has a wrong field."""
        try:
            return from_values(kind, self.read_whole(name))
        except ValueError:
            return None

    def has(self, name: str) -> bool:
        """Return whether one of this host's files exists, even if it is damaged."""
        return (self.own / name).exists()


def _sync(folder: Path) -> None:
    """Make the names in a folder survive a power cut."""
    handle = os.open(str(folder), os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def attempt_of(log: Path) -> int:
    """Return the number of the attempt that wrote a log."""
    return int(log.stem.split("_")[1])


def _is_log(path: Path) -> bool:
    """Return whether a file is the log of an attempt.

    A task may have created something else with such a name.
    """
    try:
        return path.stem.split("_", 1)[1].isdecimal() and stat.S_ISREG(os.lstat(str(path)).st_mode)
    except OSError:
        return False


def name_of(run: str) -> str:
    """Return the name that a run shares with other runs of its hosts file: ``digits`` of ``digits-20261120-155902``."""
    return _STAMP.sub("", run)


def expand(workdir: str) -> Path:
    """Return the working folder as an absolute path, with ``~`` resolved."""
    return Path(os.path.abspath(os.path.expanduser(workdir)))


def lock_path(workdir: Path, name: str, host: str) -> Path:
    """Return the path of the lock of a run's name on a host."""
    return workdir / "locks" / f"{name}@{host}.lock"
