"""The tasks that wait now, since when, and those that they wait for.

A worker in a late step asks the ps whether the step waits for it (``cluster.protocol.heartbeat``). A worker that *owes*
nothing waits. It waits for the tasks that owe, and for those that take no part in the step: one that starts, saves, is
stopped, or has no process.
"""

from typing import Iterator, List, NamedTuple, Optional

from cluster.protocol.heartbeat import LATE_S, STEPS
from cluster.task import TRAINERS
from launch.timeline.flights import TaskLine, TimeLine

ANSWER_S = 5.0  # an answer of the ps takes at most three, and the next sign has it
ACTIVITIES = {
    "starting": "it is starting",
    "saving": "it writes a checkpoint",
    "evaluating": "it measures a checkpoint",
    "comparing": "it compares with one process",
    "ending": "it has seen the last step",
}


class Blocker(NamedTuple):
    """A task that others wait for, and the reason in words."""

    line: TaskLine
    why: str


class Stall(NamedTuple):
    """A step that lasts too long.

    Attributes:
      step: the newest step that has ended, as far as is known; None before the first.
      since: the time at which the last of its workers began the late step.
      until: the time at which that was seen.
      waiting: the tasks that wait.
      blockers: the tasks that they wait for; none where no task owes anything, as far as is known.
      unanswered: tasks in a late step that have asked the ps, without an answer.
      undecided: tasks in a late step that have not asked yet.
    """

    step: Optional[int]
    since: float
    until: float
    waiting: List[TaskLine]
    blockers: List[Blocker]
    unanswered: List[TaskLine]
    undecided: List[TaskLine]


def stall(found: TimeLine) -> Optional[Stall]:
    """Return the stall of a run now; None where no step is late."""
    late = [line for line in found.lines if _is_late(line)]
    if not late:
        return None
    open_ones = [line for line in late if line.now and line.now.owes is None]
    unanswered = [line for line in open_ones if line.now and line.now.asked_s >= ANSWER_S]
    steps = [line.spans[-1].step for line in late if line.spans]
    return Stall(
        max(steps, default=None),
        max(map(_began, late)),
        found.until,
        [line for line in late if line.now and line.now.owes is False],
        [Blocker(line, why) for line in found.lines for why in _owed(line, line in late)],
        unanswered,
        [line for line in open_ones if line not in unanswered],
    )


def _is_late(line: TaskLine) -> bool:
    """Return whether a task is in a step that lasts; its sign may be of the step before its newest span."""
    now = line.now
    if now is None or not line.gives_signs or now.phase not in STEPS:
        return False
    return min(now.phase_s, line.until - _began(line)) >= LATE_S


def _began(line: TaskLine) -> float:
    """Return the time at which a task's current phase began: when its last span ended, else as its sign counts it."""
    if line.spans:
        return line.spans[-1].ended
    return line.until - (line.now.phase_s if line.now else 0.0)


def _owed(line: TaskLine, is_late: bool) -> Iterator[str]:
    """Yield the reason why others wait for a task, if they do."""
    state = line.status.state if line.status else "running"
    role = line.name.partition(":")[0]
    if role not in (*TRAINERS, "ps"):
        return
    if state not in ("running", "starting"):
        yield f"it is {state}"
    elif line.now is None:
        yield "it gives no sign of life"
    elif not line.gives_signs:
        yield f"it gives no sign of life for {line.now.age_s:.0f} s"
    elif is_late and line.now.owes:
        yield "it has not given its gradient"
    elif line.now.phase in ACTIVITIES:
        yield ACTIVITIES[line.now.phase]
