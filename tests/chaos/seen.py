"""What is seen of a run from outside: its files on the hosts, and what is left there afterwards."""

import json
import os
import re
from pathlib import Path
from typing import Any, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Tuple

from launch.agent.state.run_folder import attempt_of
from tests.support.hosts import FakeHosts
from tests.support.hosts.errors import HostError
from tests.support.hosts.host import Host

WORKDIR = "root/.launch"
LEFT = "find /root/.launch -name '*.lock' -o -name '*.sock'; find /root/trouble -name outlived; nft list tables"
_INDEX = re.compile(r"model-(\d+)\.index$")
_TOLD = re.compile(r"^(joined at step|step) (\d+)", re.MULTILINE)


class Sight(NamedTuple):
    """One look at a run: its newest status, what is in its checkpoint folder."""

    status: Mapping[str, Any]
    files: FrozenSet[str]

    @property
    def step(self) -> int:
        """The newest global step that was told."""
        return self.status.get("global_step") or 0

    @property
    def begun(self) -> bool:
        """Whether a process of a task is there."""
        return any(task["pid"] for task in self.status.get("tasks", ()))

    @property
    def checkpoints(self) -> int:
        """How many checkpoints are in the folder."""
        return sum(bool(_INDEX.search(name)) for name in self.files)


def root(host: Host) -> Optional[Path]:
    """The host's root folder as this machine sees it; None while it is powered off."""
    try:
        return Path(f"/proc/{host.init()}/root")
    except HostError:
        return None


def runs(host: Host, name: str) -> List[Path]:
    """The folders of the runs of this name on a host, oldest first: a name is made by a launcher's clock."""
    top = root(host)
    found = [] if top is None else (top / WORKDIR / "runs").glob(f"{name}-*")
    return sorted(found, key=lambda run: run.stat().st_mtime_ns)


def look(lead: Host, name: str, folder: Optional[str]) -> Sight:
    """The newest status of a run, as its lead published it; ``folder``: of its checkpoints, None: in the run's own."""
    found, top = runs(lead, name), root(lead)
    if not found or top is None:
        return Sight({}, frozenset())
    place = found[-1] / "checkpoint" if folder is None else top / folder.lstrip("/")
    try:
        status: Dict[str, Any] = json.loads((found[-1] / "hosts" / lead.name / "status.json").read_text())
        return Sight(status, frozenset(os.listdir(str(place)) if place.is_dir() else ()))
    except (OSError, ValueError):  # not there yet, or the host has just gone
        return Sight({}, frozenset())


def pids(host: Host, task: str) -> List[str]:
    """The host's own numbers of the processes of a task."""
    top, found = root(host), []
    mark = f"LAUNCH_TASK_DIR=[^\\0]*/{task.replace(':', '.')}\\0".encode()
    for entry in (top / "proc").glob("[0-9]*") if top else ():
        try:
            if re.search(mark, (entry / "environ").read_bytes()):
                found.append(entry.name)
        except OSError:
            continue
    return found


def agent(host: Host, name: str) -> Optional[int]:
    """The pid of the host's agent; None where the run has none there."""
    found = runs(host, name)
    try:
        told: Dict[str, Any] = json.loads((found[-1] / "hosts" / host.name / "agent.json").read_text())
    except (OSError, ValueError, IndexError):
        return None
    return int(told["agent"]["pid"])


def chief_logs(lead: Host, name: str) -> str:
    """The logs of the chief's attempts in the newest run, oldest first."""
    logs = [log for run in runs(lead, name)[-1:] for log in run.glob("worker.0/attempt_*.log")]
    logs.sort(key=attempt_of)
    return "".join(log.read_text(errors="replace") for log in logs)


def rejoined(host: Host, name: str) -> FrozenSet[str]:
    """The tasks on a host whose logs say that they joined again."""
    logs = [log for run in runs(host, name) for log in run.glob("worker.*/attempt_*.log")]
    return frozenset(
        log.parent.name.replace(".", ":") for log in logs if ": joining again: " in log.read_text(errors="replace")
    )


def lost_steps(log: str) -> int:
    """How far the global step went back in all, as far as the chief told of it."""
    newest = lost = 0
    for what, number in _TOLD.findall(log):
        step = int(number)
        lost += max(0, newest - step) if what != "step" else 0
        newest = step
    return lost


def saved(lead: Host, folder: Optional[str]) -> Tuple[Optional[int], Optional[Dict[str, Any]]]:
    """Read the newest checkpoint in a folder of the host: its step, and all else that it has, by name."""
    top = root(lead)
    if top is None or folder is None:
        return None, None
    place = top / folder.lstrip("/")
    names = os.listdir(str(place)) if place.is_dir() else []
    steps = [int(found.group(1)) for found in map(_INDEX.search, names) if found]
    if not steps:
        return None, None
    import tensorflow.compat.v1 as tf  # only here: it takes seconds to load

    reader = tf.train.load_checkpoint(str(place / f"model-{max(steps)}"))
    names = sorted(reader.get_variable_to_shape_map())
    return max(steps), {name: reader.get_tensor(name) for name in names if name != "global_step"}


def left(hosts: FakeHosts) -> List[str]:
    """What a run must not leave: processes, ports, locks, sockets, tables of a firewall."""
    found = []
    for host in hosts:
        found += [f"{host.name}: process {process.pid} {' '.join(process.argv)[:150]}" for process in host.processes()]
        found += [f"{host.name}: port {port}" for port in host.listening_ports()]
        found += [f"{host.name}: {line}" for line in host.run(["sh", "-c", LEFT]).stdout.splitlines()]
    return found
