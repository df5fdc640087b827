"""The status that the earlier agent had published, for a lead that was restarted.

All tasks ended with that agent, or end before they join this one. So each task begins again as its
next attempt, and the chief restores the last checkpoint.
"""

import os
import time
from dataclasses import replace
from typing import Any, Dict, NamedTuple, Optional

from launch.agent.state.run_folder import RunFolder
from launch.agent.supervision.supervisor import Supervisor
from launch.agent.wire.run_plan import RunPlan
from launch.agent.wire.run_request import RunRequest
from launch.status.run import RunStatus
from launch.status.states import ENDED, is_over
from launch.status.task import TaskStatus
from launch.status.values import from_values

DETACHED = "detached.json"  # is there when the launcher has left: the next lead waits for none


class Earlier(NamedTuple):
    """The status, how long ago it was published, and how long the run had lasted then, in seconds."""

    status: RunStatus
    ago_s: float
    lasted_s: float


def rejoined(run: RunPlan, booted: bool) -> RunPlan:
    """Return the plan of a run whose launcher has left, for a lead that was started again.

    Other hosts may still boot. An elastic run begins without those that are late, after a boot only with most of its
    hosts: somebody may have continued the run on the others.
    """
    is_elastic = run.min_workers is not None
    if is_elastic and not booted:
        return run
    quorum = len(run.hosts) // 2 + 1 if is_elastic else 0
    return replace(run, join_s=run.rejoin_s or run.join_s, quorum=quorum)


def goes_on(folder: RunFolder, request: RunRequest) -> bool:
    """Return whether an agent of the run is to be started again without a launcher that asks for it.

    A lead is, where the launcher has left it, and the run has not ended, nor was about to end.
    """
    if request.run_plan is None:
        return True
    return folder.read_whole(DETACHED) is not None and not is_over(folder.read_whole("status.json"))


def read(folder: RunFolder) -> Optional[Earlier]:
    """Return the status that the earlier agent had published.

    The result is None where the run has ended, or the earlier agent had published nothing.
    """
    values = folder.read_whole("status.json")
    if values is None or values.get("state") in ENDED:
        return None
    began_at, published_at = (os.stat(str(folder.own / name)).st_mtime for name in ("plan.json", "status.json"))
    return Earlier(
        from_values(RunStatus, values), max(0.0, time.time() - published_at), max(0.0, published_at - began_at)
    )


def continue_run(run: Supervisor, earlier: Earlier, host: str, now: float) -> None:
    """Continue the run in a new supervisor from the status of the earlier one.

    ``host`` is the lead's.
    """
    steps: Dict[str, Any] = {}
    for task in earlier.status.tasks:
        if task.name in run.tasks and _has_run(task):
            run.tasks[task.name].attempt = task.restarts + 1
            steps[task.name] = task.step
    if earlier.status.formation is not None:
        run.restore_wishes(earlier.status.formation)
    if earlier.status.state == "running":
        run.state.mark_up()
    died_at = now - earlier.ago_s
    run.incidents.restore(earlier.status.incidents, died_at - earlier.lasted_s)
    rate = earlier.status.steps_per_second
    run.incidents.stalls.restore(earlier.status.global_step, died_at, 1 / rate if rate else None, steps)
    run.incidents.stalls.steps_lost = earlier.status.lost_steps
    run.incidents.stalls.seconds_lost = earlier.status.lost_seconds
    run.incidents.effective.restore(earlier.status.effective, earlier.status.global_step, rate, died_at)
    run.incidents.begin("agent", died_at, host=host, cause="its agent ended, and every task of the run with it")
    run.incidents.record_action("the agent restarted; every task restarts from the last checkpoint", now)


def _has_run(task: TaskStatus) -> bool:
    return bool(task.restarts or task.pid is not None)
