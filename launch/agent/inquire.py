"""What a host knows of a run: from its agent where that lives, and from the run's own files where not."""

import os
import time
from typing import Any, Dict, Mapping, Optional

from launch.agent import caller, remains
from launch.agent.folder import RunFolder, newest
from launch.agent.states import ALIVE, ENDED

ADVICE = "`launch down` ends what is left of it, then `launch up --resume` goes on"


def status(request: Mapping[str, Any]) -> Dict[str, Any]:
    """The newest run's status on its lead: {"status": …}, None where there is no run.

    ``died``: its agent is gone, and did not know yet how the run ends.
    """
    folder = newest(request)
    if folder is None:
        return {"status": None}
    try:
        return {"status": caller.ask(folder.own, {"do": "status"}), "agent": True}
    except OSError:
        told = folder.read("status.json")
        known = told is not None and (told.get("state") in ENDED or told.get("cause"))
        died = not known and remains.agent_pid(folder) is None
        return {"status": _orphaned(folder, told), "agent": False, "died": died}


def restart(request: Mapping[str, Any]) -> Dict[str, Any]:
    """Has the lead of the newest run start ``request["tasks"]`` anew: {"asked": True} or {"error": …}."""
    folder = newest(request)
    try:
        if folder is not None:
            return caller.ask(folder.own, {"do": "restart", "tasks": request["tasks"]})
    except OSError:
        pass  # its agent has left
    return {"error": "no run of this name is up on this host"}


def _orphaned(folder: RunFolder, status: Optional[Dict[str, Any]]) -> Optional[Dict[str, Any]]:
    """A status whose agent is gone: what was alive then is lost now."""
    if status is None or status.get("state") in ENDED:
        return status
    tasks = [{**task, "state": "lost" if task["state"] in ALIVE else task["state"]} for task in status["tasks"]]
    seen = time.localtime(os.stat(str(folder.own / "status.json")).st_mtime)
    since = time.strftime("%Y-%m-%d %H:%M:%S", seen)
    gone = f"the agent on {folder.host} is gone since {since}, and the run with it; {ADVICE}"
    return {**status, "state": "failed", "cause": status["cause"] or gone, "tasks": tasks}
