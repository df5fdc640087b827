"""What a host knows of a run: from its agent where that lives, and from the run's own files where not."""

from typing import Any, Dict, Mapping, Optional

from launch.agent import caller
from launch.agent.folder import newest
from launch.agent.states import ALIVE, ENDED


def status(request: Mapping[str, Any]) -> Dict[str, Any]:
    """The newest run's status on its lead: {"status": …}, None where there is no run."""
    folder = newest(request)
    if folder is None:
        return {"status": None}
    try:
        return {"status": caller.ask(folder.own, {"do": "status"}), "agent": True}
    except OSError:
        return {"status": _orphaned(folder.read("status.json")), "agent": False}


def restart(request: Mapping[str, Any]) -> Dict[str, Any]:
    """Has the lead of the newest run start ``request["tasks"]`` anew: {"asked": True} or {"error": …}."""
    folder = newest(request)
    try:
        if folder is not None:
            return caller.ask(folder.own, {"do": "restart", "tasks": request["tasks"]})
    except OSError:
        pass  # its agent has left
    return {"error": "no run of this name is up on this host"}


def _orphaned(status: Optional[Dict[str, Any]]) -> Optional[Dict[str, Any]]:
    """A status whose agent is gone: what was alive then is lost now."""
    if status is None or status.get("state") in ENDED:
        return status
    tasks = [{**task, "state": "lost" if task["state"] in ALIVE else task["state"]} for task in status["tasks"]]
    return {**status, "state": "failed", "cause": "the lead's agent ended without a word", "tasks": tasks}
