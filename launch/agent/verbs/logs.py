"""The lines of task logs on this host, in the order in which they were written."""

import heapq
import time
from typing import Any, Callable, Dict, List, Sequence

from launch.agent.state import plan_file
from launch.agent.state.leftovers import agent_pid
from launch.agent.state.run_folder import RunFolder
from launch.agent.state.runs import newest
from launch.agent.tasks.log_reader import TaskLog
from launch.agent.wire.verb_requests import LogsRequest

POLL_S = 0.1


def _nobody_goes(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def logs(
    request: LogsRequest,
    send: Callable[[Dict[str, Any]], None],
    gone: Callable[[float], bool] = _nobody_goes,
) -> None:
    """Send {"task", "attempt", "line", "time"} for every line that this host's tasks wrote.

    ``gone`` waits so many seconds, less when the listener goes, and returns whether the listener has
    gone.
    """
    folder = newest(request.run)
    if folder is None:
        send({"error": "no run of this name has been on this host"})
        return
    files = [TaskLog(folder, task, request.since, request.until, request.tail) for task in request.tasks]
    alive = True
    while alive:
        # Looked at before the files: lines written until the end are not missed.
        alive = request.follow and agent_pid(folder) is not None
        for line in heapq.merge(*(file.lines(last=not alive) for file in files), key=lambda line: line["time"]):
            send(line)
        if alive and gone(POLL_S):
            return
    elsewhere = _elsewhere(folder, request.tasks)
    if elsewhere:
        send({"error": f"{', '.join(elsewhere)} of {folder.run} ran on another host: the file has changed since"})


def _elsewhere(folder: RunFolder, tasks: Sequence[str]) -> List[str]:
    """Return those of ``tasks`` that this host was not asked to run.

    Such tasks have no lines here; ``logs`` reports an error for them instead of nothing.
    """
    plan = plan_file.read(folder)
    return [task for task in tasks if plan.tasks is not None and task not in plan.names]
