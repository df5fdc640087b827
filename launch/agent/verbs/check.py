"""This host's part of ``launch check``: a conversation that opens ports, dials others, and reports findings.

The first request opens this host's ports, and the answer names those that are taken. From then on the launcher may
ask for the time. Once every host's ports are open, the launcher may ask for a look: all that this host finds out by
itself and about the others. The ports are closed when the launcher's end is closed, or at the deadline, whichever
comes first.
"""

import os
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, Optional

from launch.agent.environments.environment import Environment
from launch.agent.gpus import assignment
from launch.agent.gpus.state import driver_and_gpus
from launch.agent.linux import file_lock
from launch.agent.network import firewall
from launch.agent.network.listeners import Doors
from launch.agent.network.probes import dial_all
from launch.agent.network.resolver import resolve
from launch.agent.network.target import Target
from launch.agent.state import locks, plan_file
from launch.agent.state.run_folder import RunFolder, expand
from launch.agent.tasks.python_probe import Versions
from launch.agent.tasks.task_env import PROXIES

SAMPLE = b"\0" * 65536  # what is written to see whether a folder takes it
Values = Dict[str, Any]


def check(read: Callable[[], Values], tell: Callable[[Values], None]) -> None:
    """Answer the launcher's requests until its end is closed; ``read`` ends the process then.

    The first request: {"host", "words", "ports", "within_s"}. The others: {"do": "time"}, and
    {"do": "look", …} as ``look`` takes it.
    """
    request = read()
    deadline = threading.Timer(request["within_s"], os._exit, [0])
    deadline.daemon = True
    deadline.start()
    with Doors(request["words"], request["host"]) as doors:
        tell({"ports": doors.open(request["ports"])})
        while True:
            asked = read()
            if asked["do"] == "time":
                tell({"time": time.time()})
            else:  # in a thread, so that the launcher's going is noticed meanwhile
                threading.Thread(target=_look_and_tell, args=(asked, tell), daemon=True).start()


def _look_and_tell(asked: Mapping[str, Any], tell: Callable[[Values], None]) -> None:
    try:
        tell(look(asked))
    except Exception as error:  # the launcher would wait for nothing
        tell({"error": f"the look failed: {type(error).__name__}: {error}"})


def look(asked: Mapping[str, Any]) -> Values:
    """Return all that this host knows about itself and its connections to the others.

    ``asked`` has ``within_s``, and: ``python`` and ``env`` of the tasks, or the hash of the
    ``environment`` that has their Python; ``names`` to resolve and ``targets`` [[address, host]]
    to dial, ``here`` and ``words`` as ``dial_all`` takes them; ``wishes`` {task: gpus},
    ``folders``, ``programs`` {program: PATH}, ``guard``: whether one is wanted, and the run's
    ``name``, ``host`` and ``workdir``.
    """
    until = time.monotonic() + asked["within_s"]
    environment = Environment(expand(asked["workdir"]), asked["environment"]) if asked["environment"] else None
    python = str(environment.python) if environment else asked["python"]
    versions = Versions(python, asked["env"])  # asked first: they take longest
    names = resolve(asked["names"], asked["within_s"] / 4)
    targets = [Target(*pair) for pair in asked["targets"]]
    return {
        "environment_ready": environment is None or environment.is_ready(),
        "names": names,
        "unreached": dial_all(targets, names, asked["words"], asked["here"], asked["knock_s"]),
        "unguarded": firewall.refusal() if asked["guard"] else None,
        **_gpus(asked["wishes"]),
        "folders": {folder: space(folder, folder == asked["workdir"]) for folder in asked["folders"]},
        "missing_programs": [name for name, path in asked["programs"].items() if shutil.which(name, path=path) is None],
        "run": _run(asked),
        "proxies": sorted(name for name in os.environ if name.lower() in PROXIES),
        "versions": versions.answers(max(1.0, until - time.monotonic())),
    }


def _gpus(wishes: Mapping[str, assignment.Wish]) -> Values:
    """The driver, the GPUs, and which of them each task would get: {"given": {task: indices}, "lacking": why}."""
    state = driver_and_gpus()
    try:
        return {**state, "given": assignment.give(wishes, len(state["gpus"])), "lacking": None}
    except ValueError as error:
        return {**state, "given": {}, "lacking": str(error)}


def space(folder: str, locks_too: bool = False) -> Values:
    """Return the free space of a folder, or of its nearest existing parent: {"free_bytes", "error"}.

    With ``locks_too`` a file system without locks is an error.
    """
    place = _existing(expand(folder))
    try:
        state = os.statvfs(str(place))
        with tempfile.TemporaryFile(dir=str(place)) as sample:
            sample.write(SAMPLE)
            sample.flush()
            os.fsync(sample.fileno())  # some file systems say only then that they are full
            if locks_too:
                file_lock.lock(sample.fileno(), place / "sample")
    except file_lock.NoLocks as error:
        return {"free_bytes": None, "error": str(error)}
    except OSError as error:
        return {"free_bytes": None, "error": os.strerror(error.errno or 0)}
    return {"free_bytes": state.f_bavail * state.f_frsize, "error": None}


def _existing(path: Path) -> Path:
    return next(place for place in (path, *path.parents) if place.is_dir())


def _run(asked: Mapping[str, Any]) -> Optional[Values]:
    """The run of this name that is up on this host: {"run", "pid", "code": {kind: hash}}, or None."""
    workdir = expand(asked["workdir"])
    held = locks.lock_holder(workdir, asked["name"], asked["host"])
    if held is None:
        return None
    return {**held, "code": plan_file.read(RunFolder(workdir, held["run"], asked["host"])).code}
