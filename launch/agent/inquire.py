"""What a host knows of a run, and how its part of one is ended from outside.

These verbs work with the agent's help where it lives, and from the run's own files and
the process table where it does not.
"""

import json
import signal
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

from launch.agent import caller, ports, processes
from launch.agent.folder import RunFolder, expand, lock_path, runs
from launch.agent.locks import lock_holder

POLL_S = 0.1
ENDED = ("succeeded", "failed", "stopped")


def _newest(request: Mapping[str, Any]) -> Optional[RunFolder]:
    workdir = expand(request["workdir"])
    if request.get("run"):
        folder = RunFolder(workdir, request["run"], request["host"])
        return folder if folder.own.is_dir() else None
    found = runs(workdir, request["name"], request["host"])
    return found[0] if found else None


def status(request: Mapping[str, Any]) -> Dict[str, Any]:
    """The newest run's status on its lead: {"status": …}, None where there is no run."""
    folder = _newest(request)
    if folder is None:
        return {"status": None}
    try:
        return {"status": caller.ask(folder.own, {"do": "status"}), "agent": True}
    except OSError:
        return {"status": _orphaned(folder.read("status.json")), "agent": False}


def _orphaned(status: Optional[Dict[str, Any]]) -> Optional[Dict[str, Any]]:
    """A status whose agent is gone: what was alive then is lost now."""
    if status is None or status.get("state") in ENDED:
        return status
    tasks = [
        {**task, "state": "lost" if task["state"] in ("starting", "running", "restarting") else task["state"]}
        for task in status["tasks"]
    ]
    return {**status, "state": "failed", "cause": "the lead's agent ended without a word", "tasks": tasks}


# -- down


def look(request: Mapping[str, Any]) -> Dict[str, Any]:
    """What of the newest run is on this host now: {"run", "processes", "ports", "locks"}."""
    folder = _newest(request)
    return {"run": folder.run, **_left(folder)} if folder else {"run": None, "processes": [], "ports": [], "locks": []}


def down(request: Mapping[str, Any]) -> Dict[str, Any]:
    """Ends this host's part of the newest run; tells what is left of it, as ``look`` does.

    ``request`` holds ``timeout_s`` and ``reason``. On the lead the whole run is stopped in
    order, workers before ps.
    """
    folder = _newest(request)
    if folder is not None:
        _end_agent(folder, request)
        _end_leftovers(folder)
    return look(request)


def _end_agent(folder: RunFolder, request: Mapping[str, Any]) -> None:
    """Asks the agent to stop; asks again with more force when it does not."""
    reason = request.get("reason", "launch down")
    for verb, patience_s in (("stop", request["timeout_s"]), ("kill", request["timeout_s"])):
        try:
            with caller.connect(folder.own, 5.0) as agent:
                agent.sendall(json.dumps({"do": verb, "reason": reason}).encode() + b"\n")
                if _wait(lambda: _agent_gone(folder), patience_s):
                    return
        except OSError:
            return


def _agent_gone(folder: RunFolder) -> bool:
    try:
        caller.connect(folder.own, 5.0).close()
    except OSError:
        return _agent_pid(folder) is None
    return False


def _agent_pid(folder: RunFolder) -> Optional[int]:
    plan = folder.read("plan.json") or {}
    holder = lock_holder(folder.workdir, plan.get("name", ""), folder.host)
    return holder["pid"] if holder and holder.get("run") == folder.run else None


def _end_leftovers(folder: RunFolder) -> None:
    """Removes what an agent that died left behind, known by the run's own records."""
    if _agent_pid(folder) is not None:
        return
    for process in _recorded(folder):
        processes.signal_process(process.pid, process.start, signal.SIGKILL)
    _wait(lambda: not _recorded(folder), 10.0)
    for stale in _stale(folder):
        stale.unlink()


def _stale(folder: RunFolder) -> List[Path]:
    """The run's lock and socket, where they exist. A lock that another run holds is not ours."""
    plan = folder.read("plan.json") or {}
    lock = lock_path(folder.workdir, plan.get("name", ""), folder.host)
    holder = lock_holder(folder.workdir, plan.get("name", ""), folder.host)
    ours = [lock] if holder is None or holder.get("run") == folder.run else []
    return [path for path in [*ours, folder.own / "agent.sock"] if path.exists()]


def _recorded(folder: RunFolder) -> List[processes.Process]:
    """Living processes of this run's tasks.

    The run's own record names the groups; that a group still is the run's, and not one
    that got its number since, is shown by the environment its processes were started with.
    """
    leaders = (folder.read("processes.json") or {"leaders": []})["leaders"]
    return [
        process
        for process in processes.table()
        if (process.group in leaders or process.session in leaders)
        and process.state != "Z"
        and processes.environment(process.pid).get("LAUNCH_RUN") == folder.run
    ]


def _left(folder: RunFolder) -> Dict[str, List[Any]]:
    """What of the run exists on this host now."""
    plan = folder.read("plan.json") or {"tasks": []}
    agent = _agent_pid(folder)
    pids = sorted({process.pid for process in _recorded(folder)} | ({agent} if agent else set()))
    return {
        "processes": [{"pid": pid, "argv": processes.command_line(pid)} for pid in pids],
        "ports": [task["port"] for task in plan["tasks"] if ports.holder(task["port"]) in pids],
        "locks": [str(path) for path in _stale(folder)],
    }


def _wait(done: Callable[[], bool], timeout_s: float) -> bool:
    until = time.monotonic() + timeout_s
    while not done():
        if time.monotonic() > until:
            return False
        time.sleep(POLL_S)
    return True


# -- logs


def _nobody_goes(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def logs(
    request: Mapping[str, Any],
    tell: Callable[[Dict[str, Any]], None],
    gone: Callable[[float], bool] = _nobody_goes,
) -> None:
    """Tells {"task", "attempt", "line"} for every line of the tasks' logs on this host.

    ``gone`` waits so many seconds, less when the listener goes, and says whether it has.
    """
    folder = _newest(request)
    if folder is None:
        tell({"error": "no run of this name has been on this host"})
        return
    read: Dict[Path, int] = {}
    alive = True
    while alive:
        # Looked at before the files: lines written until the end are not missed.
        alive = bool(request.get("follow")) and _agent_pid(folder) is not None
        for task in request["tasks"]:
            lines = list(_new_lines(folder.logs(task), read, last=not alive))
            for attempt, line in lines[-request.get("tail", len(lines)) :]:
                tell({"task": task, "attempt": attempt, "line": line})
        if alive and gone(POLL_S):
            return


def _new_lines(files: List[Path], read: Dict[Path, int], last: bool) -> Iterator[Tuple[int, str]]:
    """Whole lines that were not read before, and with ``last`` also a rest without newline."""
    for file in files:
        with open(str(file), "rb") as log:
            log.seek(read.get(file, 0))
            data = log.read()
        if not last:
            data = data[: data.rfind(b"\n") + 1]
        read[file] = read.get(file, 0) + len(data)
        for line in data.decode(errors="replace").splitlines():
            yield int(file.stem.split("_")[1]), line
