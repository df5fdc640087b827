"""The continuation of a run by a restarted lead, from the status that the earlier lead had published.

All tasks ended with the earlier agent, or end before their host joins the new lead. So each task restarts as its next
attempt, and the chief restores the last checkpoint.
"""

import contextlib
import os
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Dict, NamedTuple, Optional, Sequence

from launch.agent.protocol.messages import Order, Start
from launch.agent.state.run_folder import RunFolder, attempt_of
from launch.agent.supervision.supervisor import Supervisor
from launch.agent.wire.run_request import RunPlan
from launch.status.run import ENDED, RunStatus

DETACHED = "detached.json"  # exists once the launcher has left: the next lead waits for no launcher
ATTEMPTS = "attempts.json"


class Attempts:
    """A file with each task's newest attempt, which the lead writes before it sends the order to start.

    The lead writes the status only later. If the lead ended in between, the next lead would, without this file, use
    the number of an attempt twice. The file survives a power cut.
    """

    def __init__(self, folder: RunFolder):
        self._folder = folder
        self._newest: Dict[str, Any] = folder.read_whole(ATTEMPTS) or {}

    def note(self, orders: Sequence[Order]) -> None:
        """Record the attempts in these orders, before the orders are sent."""
        ordered = {order.task: order.attempt for order in orders if isinstance(order, Start)}
        if ordered:
            self._newest.update(ordered)
            self._folder.note(ATTEMPTS, self._newest, durable=True)

    def continue_in(self, run: Supervisor, earlier: Optional[RunStatus] = None) -> None:
        """Let each task of ``run`` begin with the attempt after its newest attempt in this file or in ``earlier``.

        If the file is damaged, only the status counts, which is at most a moment older. Then the file is written again,
        as the status of this lead shows no attempt before the tasks begin.
        """
        shown = {} if earlier is None else _attempts_in(earlier)
        for name, task in run.tasks.items():
            noted = self._newest.get(name)
            task.attempt = 1 + max(noted if isinstance(noted, int) else -1, shown.get(name, -1))
        newest = {name: task.attempt - 1 for name, task in run.tasks.items() if task.attempt > 0}
        if newest != self._newest:
            self._newest = newest
            self._folder.note(ATTEMPTS, newest, durable=True)


def _attempts_in(status: RunStatus) -> Dict[str, int]:
    """Return the newest attempt of each task that has begun, as the path of its log names it."""
    found: Dict[str, int] = {}
    for task in status.tasks:
        if task.log is not None:
            with contextlib.suppress(ValueError, IndexError):
                found[task.name] = attempt_of(Path(task.log))
    return found


class Earlier(NamedTuple):
    """The status that the earlier lead had published.

    ``ago_s`` is the age of the status, and ``lasted_s`` the duration of the run at its publication, both in seconds.
    """

    status: RunStatus
    ago_s: float
    lasted_s: float


def rejoined(run: RunPlan, booted: bool) -> RunPlan:
    """Return the plan with which a restarted lead continues a run whose launcher has left.

    Other hosts may still boot. An elastic run begins without late hosts. After a boot of the lead's host (``booted``),
    an elastic run begins only with more than half of its hosts: a user may have continued the run on the others.
    """
    is_elastic = run.min_workers is not None
    if is_elastic and not booted:
        return run
    quorum = len(run.hosts) // 2 + 1 if is_elastic else 0
    return replace(run, join_s=run.rejoin_s or run.join_s, quorum=quorum)


def read(folder: RunFolder) -> Optional[Earlier]:
    """Return the status that the earlier agent had published.

    The result is None where the run has ended, or where the file has no complete status.
    """
    status = folder.read_record("status.json", RunStatus)
    if status is None or status.state in ENDED:
        return None
    began_at, published_at = (os.stat(str(folder.own / name)).st_mtime for name in ("plan.json", "status.json"))
    started_at = _moment(status.started)
    if started_at is not None and began_at - started_at > 1.0:  # after a day the agent gives plan.json a newer time
        began_at = started_at
    return Earlier(status, max(0.0, time.time() - published_at), max(0.0, published_at - began_at))


def _moment(text: Optional[str]) -> Optional[float]:
    """Return a moment in ISO 8601, to the second, as seconds since 1970."""
    with contextlib.suppress(ValueError):
        return datetime.fromisoformat(text).timestamp() if text else None
    return None


def continue_run(run: Supervisor, earlier: Earlier, host: str, now: float) -> None:
    """Continue the run in the new supervisor ``run``, from the ``earlier`` status; ``host`` is the lead's host."""
    newest = earlier.status.global_step or 0  # a later step of a task is from before a return that is counted already
    steps: Dict[str, Any] = {
        each.name: None if (each.step or 0) > newest else each.step for each in earlier.status.tasks
    }
    if earlier.status.formation is not None:
        run.formations.wishes.restore(earlier.status.formation)
    if earlier.status.state == "running":
        run.state.was_up = True
    died_at = now - earlier.ago_s
    if run.plan.judge == "exit":
        run.program_steps.restore(name for name, step in steps.items() if step is not None)
        run.incidents.has_progress = earlier.status.global_step is not None  # also where all tasks were starting
    run.curve.restore(earlier.status.history)
    run.incidents.restore(earlier.status.incidents, died_at - earlier.lasted_s)
    rate = earlier.status.steps_per_second
    run.incidents.stalls.restore(earlier.status.global_step, died_at, 1 / rate if rate else None, steps)
    run.incidents.stalls.steps_lost = earlier.status.lost_steps
    run.incidents.stalls.seconds_lost = earlier.status.lost_seconds
    run.incidents.effective.restore(earlier.status.effective, earlier.status.global_step, rate, died_at)
    run.incidents.begin("agent", died_at, host=host, cause="its agent ended, and every task of the run with it")
    run.incidents.record_action("the agent restarted; every task restarts from the last checkpoint", now)
