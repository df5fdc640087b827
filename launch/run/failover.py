"""Begin a run again on the hosts that are left, after the chief's host and with it the lead are lost.

Only an attached launcher does this, for a run that is ``elastic`` and has copies of its checkpoints
(``train.checkpoint.replicas``). The successor is a new run of the same name. The successor's chief is the first
worker that is left, and the successor goes on from the newest copy.
"""

import time
from dataclasses import replace
from typing import Callable, Collection, List, Optional

from cluster.spec.model import Spec, TaskSpec
from cluster.task import TRAINERS
from launch.hostfile.selection import renumbered
from launch.plan.agent_requests import LEASE_S
from launch.run.draft import RunStart
from launch.run.follower import SILENT_S
from launch.run.lifecycle import Ended
from launch.signals import Interrupts
from launch.teardown import STOP_S
from launch.view.console import fold, say

MARGIN_S = 2.0


def with_failover(train: Callable[[RunStart], Ended], start: RunStart, interrupts: Interrupts) -> Ended:
    """Train; each time the chief's host is lost, train on with the hosts that are left.

    Raises:
      Interrupted: a signal came while the lost lead may still have had its lease.
    """
    ended = train(start)
    following = successor(start.spec, ended, interrupts)
    while following is not None:
        start = following._replace(detach=start.detach)
        ended = train(start)
        following = successor(start.spec, ended, interrupts)
    return ended


def successor(spec: Spec, ended: Ended, interrupts: Interrupts) -> Optional[RunStart]:
    """Wait until the successor of an ended run may begin, and return it; else None. Raises Interrupted."""
    if ended.lead_lost_at is None or interrupts.received:
        return None
    follows = without(spec, {spec.chief.host, *ended.out_of_reach})
    if follows is None:
        return None
    gone, chief = [host for host in spec.hosts if host not in follows.hosts], follows.chief.host
    say(f"continuing without {fold(gone)}, from the newest copy of the checkpoints, with the chief on {chief}")
    await_lease(spec, ended.lead_lost_at, interrupts)
    return RunStart(follows, resume=True, needed=False)


def without(spec: Spec, lost: Collection[str]) -> Optional[Spec]:
    """Return the successor's spec without the lost hosts; None where no successor is possible."""
    if spec.elastic is None or spec.train.checkpoint.replicas == 0:
        return None
    left = _with_spares([task for task in spec.tasks if task.host not in lost], len(spec.tasks_of("ps")))
    workers = sum(task.role in TRAINERS for task in left)
    serves = any(task.role == "ps" and not task.spare for task in left)
    if not serves or workers < max(1, spec.elastic.min_workers):
        return None
    return replace(spec, tasks=renumbered(left))


def _with_spares(left: List[TaskSpec], servers: int) -> List[TaskSpec]:
    """Replace lost ps by spares, until there are as many ps as before.

    Where too few spares are left, the result has fewer ps.
    """
    wanting = servers - sum(task.role == "ps" and not task.spare for task in left)
    tasks = []
    for task in left:
        moves = task.spare and wanting > 0
        wanting -= moves
        tasks.append(replace(task, spare=False) if moves else task)
    return tasks


def await_lease(spec: Spec, lost_at: float, interrupts: Interrupts) -> None:
    """Wait until the lost lead's lease has ended, however late a beat reached that lead.

    Where both runs save into one folder, the wait also gives the lead the time to end its tasks.

    Args:
      lost_at: the time at which the launcher last received from the lead, by ``time.monotonic()``.

    Raises:
      Interrupted: a signal came.
    """
    shared = spec.train.checkpoint.dir is not None
    until = lost_at + SILENT_S + LEASE_S + MARGIN_S + (STOP_S if shared else 0.0)
    interrupts.wait(max(0.0, until - time.monotonic()))
