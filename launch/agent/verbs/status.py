"""The status of a run, from its agent, or from the run's files if no agent answers."""

import os
import time
from dataclasses import replace
from typing import Any, Dict, Optional

from cluster.protocol.typed_json import from_values, to_values
from launch.agent import leftovers
from launch.agent.protocol import local_socket
from launch.agent.state import plan_file
from launch.agent.state.run_folder import RunFolder
from launch.agent.state.runs import described, newest
from launch.agent.wire.verb_requests import DrainRequest, RestartRequest, RunReference
from launch.status.run import ALIVE, ENDED, RunStatus, is_over, utc

ADVICE = "run `launch down {file}`, then `launch up {file} --resume`"
STARTS_S = 5.0  # for a starting agent to write the run's first status
LOOK_S = 0.05


def status(reference: RunReference) -> Dict[str, Any]:
    """Return the status of the newest run on this host, as {"status": …}; the value is None if there is no run.

    Only the chief's host has the status of the whole run.
    The other keys are those of ``runs.described``, ``agent`` (whether the agent answered) and ``died`` (whether the
    agent ended before the run's result was known).
    """
    folder = newest(reference)
    if folder is None:
        return {"status": None}
    until = time.monotonic() + STARTS_S
    while True:
        run = described(folder)
        try:
            return {**run, "status": local_socket.ask_agent(folder.own, {"do": "status"}), "agent": True}
        except OSError:
            recorded = folder.read_whole("status.json")
        leads = run["lead"] in (None, folder.host)  # a member has no status of the run
        if run["lead"] == folder.host and not is_whole(recorded):
            recorded = None
        if recorded is not None or not leads or time.monotonic() >= until:
            break
        time.sleep(LOOK_S)
    lives = leftovers.agent_pid(folder) is not None
    died = not (lives or is_over(recorded))
    return {**run, "status": orphaned(folder, recorded, lives), "agent": False, "died": died}


def is_whole(recorded: Optional[Dict[str, Any]]) -> bool:
    """Return whether a run's status is neither missing nor damaged."""
    try:
        return from_values(RunStatus, recorded) is not None
    except ValueError:
        return False


def linked(reference: RunReference) -> Dict[str, Any]:
    """Return {"hosts": the hosts whose agents are linked to the lead of the newest run} or {"error": …}."""
    return _ask(reference, {"do": "linked"})


def restart(request: RestartRequest) -> Dict[str, Any]:
    """Ask the lead of the newest run to restart tasks; return {"asked": True} or {"error": …}."""
    return _ask(request.run, {"do": "restart", "tasks": list(request.tasks)})


def drain(request: DrainRequest) -> Dict[str, Any]:
    """Ask the lead of the newest run to drain tasks; return {"wrong": reasons why it cannot} or {"error": …}."""
    return _ask(request.run, {"do": "drain", "tasks": list(request.tasks), "back": request.back})


def _ask(run: RunReference, question: Dict[str, Any]) -> Dict[str, Any]:
    folder = newest(run)
    try:
        if folder is not None:
            return local_socket.ask_agent(folder.own, question)
    except OSError:
        pass  # the agent has ended
    return {"error": "no run of this name is up on this host"}


def orphaned(folder: RunFolder, status: Optional[Dict[str, Any]], lives: bool = False) -> Optional[Dict[str, Any]]:
    """Return ``status``, which an agent wrote before it ended, with the state of the run changed to ``failed``.

    Tasks that were alive get the state ``lost``. The status of an ended run, or of a member, is returned unchanged.
    With ``lives``, the agent is there and does not answer. It may continue, so only its host becomes silent.
    """
    if status is None or status.get("state") in (None, *ENDED):  # a member reports only its own tasks, and no state
        return status
    if lives:
        return {**status, "silent": [folder.host]}
    known = from_values(RunStatus, status)
    tasks = [replace(task, state="lost") if task.state in ALIVE else task for task in known.tasks]
    since = utc(os.stat(str(folder.own / "status.json")).st_mtime)
    advice = ADVICE.format(file=plan_file.read(folder).file)
    gone = f"the agent on {folder.host} ended after {since}, and the run with it; {advice}"
    return to_values(replace(known, state="failed", ended=since, cause=known.cause or gone, tasks=tasks))
