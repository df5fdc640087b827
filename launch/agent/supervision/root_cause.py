"""The first cause of a task's repeated failures, of a lost connection, and of the run's failure.

These rules decide whether one event causes another:

    a task fails again before it trains again; or soon     the second failure is a consequence of the first
      after, in a program that reports no progress
    a task loses a connection while its peer, or any       the failure is a consequence of the other task's incident
      other task, is gone
    a task reports a lost connection, and then another     the end is the cause: it is only reported later, since
      task ends within ``WINDOW_S``, or a host within      the clocks and the network delays of hosts differ
      ``HOST_WINDOW_S``
"""

import re
from typing import Dict, List, Mapping, NamedTuple, Optional

from cluster.errors import CheckpointError, NonFiniteError
from cluster.protocol.failure_kinds import LOST_CONNECTION
from launch.agent.protocol.messages import Exited
from launch.agent.supervision.incident import OF_A_HOST, Incident
from launch.agent.supervision.task_records import TaskRecord
from launch.status.task import name_of

STEADY_S = 60.0  # a task must run this long until its next failure has a new cause
WINDOW_S = 10.0  # between two ends, where one may have caused the other
HOST_WINDOW_S = 30.0  # a host's end is known only after some silence
_CUTS_NOBODY = (CheckpointError.kind, NonFiniteError.kind, LOST_CONNECTION)
_TASK = re.compile(r"\b(?:job:)?(ps|chief|worker|evaluator)(?:/replica:\d+/task)?:(\d+)\b")


class Relapses:
    """The newest incident of each task, and the incident that began the quick series leading to it.

    Times are seconds since the run began.
    """

    def __init__(self) -> None:
        self._newest: Dict[str, Incident] = {}
        self._first: Dict[str, Incident] = {}

    def add(self, incident: Incident, at_s: float) -> None:
        """Record an incident of a task at the time ``at_s``; the newest incident may be recorded again."""
        task = incident.task or ""
        before = self._newest.get(task)
        if before is None or not is_recent(before, at_s):
            self._first[task] = incident
        self._newest[task] = incident

    def newest(self, task: Optional[str]) -> Optional[Incident]:
        """Return the newest incident of a task."""
        return self._newest.get(task or "")

    def discard(self, incident: Incident) -> None:
        """Forget an incident that has turned out to be a consequence of another one."""
        if self._newest.get(incident.task or "") is incident:
            del self._newest[incident.task or ""]

    def first(self, task: str, newest: Incident) -> Incident:
        """Return the incident that began the quick series leading to a task's newest incident."""
        return self._first.get(task, newest)


def is_recent(incident: Incident, at_s: float) -> bool:
    """Return whether the incident's task resumed at most ``STEADY_S`` ago, or has not resumed yet.

    ``at_s`` is the present time. The task's next failure may then have the same cause.
    """
    resumed_s = incident.again_s or incident.restarted_s or 0.0
    return incident.open or at_s - incident.at_s - resumed_s <= STEADY_S


class Cuts:
    """The incidents that may have cut connections of other tasks."""

    def __init__(self) -> None:
        self._newest: Optional[Incident] = None
        self._closed_at = 0.0
        self._unexplained: Optional[Incident] = None  # the newest lost connection whose cause is not known

    def cause_of(self, incident: Incident, open_incidents: Mapping[str, Incident], now: float) -> Optional[Incident]:
        """Return the incident that caused ``incident``, a task's lost connection; None if no cause is known.

        For an incident of another kind the result is None, too. ``open_incidents`` has the open incidents by task.
        """
        if incident.kind != LOST_CONNECTION:
            return None
        for peer in peers(incident.cause or ""):
            if peer in open_incidents:
                return open_incidents[peer]
        recent = self._newest is not None and (self._newest.open or now - self._closed_at <= WINDOW_S)
        return self._newest if recent else self._unexplained_before(incident)

    def add(self, incident: Incident) -> Optional[Incident]:
        """Record ``incident``, which has no known cause; return the earlier lost connection that it caused, or None."""
        if incident.kind == LOST_CONNECTION:
            self._unexplained = incident
            return None
        if incident.kind in _CUTS_NOBODY or incident.role == "evaluator":
            return None
        earlier = self._unexplained_before(incident)
        self._newest, self._unexplained = incident, None
        return earlier

    def awaits_cause(self, at_s: float) -> bool:
        """Return whether the end of another task may still turn out to be the cause of a lost connection."""
        return self._unexplained is not None and at_s - self._unexplained.at_s <= WINDOW_S

    def close(self, incident: Incident, now: float) -> None:
        """Record that an incident is over."""
        if incident is self._newest:
            self._closed_at = now

    def _unexplained_before(self, incident: Incident) -> Optional[Incident]:
        earlier, window_s = self._unexplained, HOST_WINDOW_S if incident.kind in OF_A_HOST else WINDOW_S
        return earlier if earlier is not None and incident.at_s - earlier.at_s <= window_s else None


class Blame(NamedTuple):
    """The incident that made a run fail, and the cause of the failure as one line."""

    incident: Incident
    line: str


def blame(task: TaskRecord, event: Exited, incident: Incident, first: Incident, attempts: int) -> Blame:
    """Return the first cause of a run's failure, after a task has failed that may not restart.

    Args:
      event: the task's last failure.
      incident: the incident of that failure.
      first: the first of the incidents that led up to this failure.
      attempts: the number of attempts that a task has.
    """
    title, cause = f"{event.task}@{task.plan.host}", event.cause or ""
    tried = f" (attempt {task.failures + 1} of {attempts})" if task.failures else ""
    if incident.task != event.task:
        return Blame(incident, f"{incident.line}; so {title} failed{tried}: {cause}")
    if first.cause != cause:
        return Blame(first, f"{title} (attempt {first.tried} of {attempts}): {first.cause}; finally: {cause}")
    return Blame(first, f"{title}{tried}: {cause}")


def blame_root(root: Incident, consequence: Incident) -> Blame:
    """Return the cause of a run's failure, where ``root`` has turned out to be the cause of ``consequence``."""
    return Blame(root, f"{root.line}; so {consequence.title} failed: {consequence.cause}")


def peers(text: str) -> List[str]:
    """Return the names of the tasks that a text mentions.

    The text may name a task as the launcher does (``ps:0``), or as TensorFlow does (``/job:ps/replica:0/task:0``).
    """
    return [name_of(role, int(index)) for role, index in _TASK.findall(text)]
