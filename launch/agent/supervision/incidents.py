"""The incidents of a run: first causes, their consequences, and the return of training.

The result depends only on the calls and their times. The supervisor reports every exit, start and
progress. Code that notices another problem (a frozen task, a lost host) calls ``began``, and code
that acts on a problem calls ``did``.

An event begins an incident, or only follows from one:

    a task fails, and no incident of it is open           an incident
    it fails again before that is over, or, of a          follows from that incident
      program that reports no progress, soon after
    it fails for want of a connection, while the task     follows from that task's incident
      that it could not reach, or any other, is gone
    that comes first, and the other's end is reported     the other's is the incident, in the place of
      within ``WINDOW_S``, or a host's end within           the first: the clocks and ways of hosts differ
      ``HOST_WINDOW_S``

An incident is over when its task takes part in training again and there is a step newer than any
before. For a program that reports no progress, the incident is over when the next process exists.
Every event costs the same, however many tasks and incidents there are.
"""

import re
from typing import Any, Dict, List, Mapping, Optional, Sequence

from cluster.task import TRAINERS
from launch.agent.protocol.messages import Exited
from launch.agent.supervision.incident import OF_A_HOST, Incident, recalled
from launch.agent.supervision.kept import Kept
from launch.agent.supervision.record import TaskRecord
from launch.agent.supervision.standstill import Standstill
from launch.status.incident import Deed, IncidentStatus
from launch.status.task_names import name_of

STEADY_S = 60.0  # for so long a task must be well again, until what it fails of next is something new
WINDOW_S = 10.0  # between two ends, of which one may have caused the other
HOST_WINDOW_S = 30.0  # of a host it is only known when it has been silent for a while
NEWEST = 12  # incidents that are kept, besides the first
LOST = "lost-connection"
_TASK = re.compile(r"\b(?:job:)?(ps|chief|worker|evaluator)(?:/replica:\d+/task)?:(\d+)\b")


class Incidents:
    """The incidents of one run.

    Args:
      tasks: by name; ``Incidents`` reads the place, the attempts and the log of each.
      tells: whether tasks report their progress; those of ``command:`` do not.
    """

    def __init__(self, tasks: Mapping[str, TaskRecord], tells: bool = True):
        self.standstill = Standstill()
        self.began_at: Optional[float] = None  # of the run, on the supervisor's clock
        self.version = 0  # counts changes
        self._tasks, self._tells = tasks, tells
        self._kept: Kept[Incident] = Kept(1, NEWEST)
        self._newest: Optional[Incident] = None
        self._root: Optional[Incident] = None  # the newest that others may have lost their connection for
        self._root_over_at = 0.0
        self._causeless: Optional[Incident] = None  # the newest lost connection whose cause is not known
        self._down: Dict[str, Incident] = {}  # by task: what keeps it from training
        self._unstarted: List[Incident] = []  # of hosts, until a task is started after them
        self._served: Dict[int, Incident] = {}  # by id, until any worker takes a step
        self._behind: Dict[int, Incident] = {}  # by id, until a step is newer than any before
        self._lately: Dict[str, Incident] = {}  # by task, its newest
        self._first: Dict[str, Incident] = {}  # by task, the first of those that came soon after each other
        self.fatal: Optional[Incident] = None  # why the run has failed
        self.verdict: Optional[str] = None  # likewise, in a line
        self._statuses: List[IncidentStatus] = []
        self._statuses_of = 0  # the version that they are of

    def recall(self, shown: Sequence[IncidentStatus], began_at: float) -> None:
        """Restore the incidents that an earlier supervisor showed; all of them are over now."""
        self.began_at = began_at
        for each in shown:
            self._kept.add(recalled(each))
            self._kept.count = each.number
        self.version += 1

    # -- what goes wrong

    def began(
        self,
        kind: str,
        now: float,
        task: Optional[str] = None,
        host: Optional[str] = None,
        cause: Optional[str] = None,
        exit_code: Optional[int] = None,
        log: Optional[str] = None,
        lines: Sequence[str] = (),
        stack: Optional[str] = None,
    ) -> Incident:
        """Record a problem of a task, a host, or neither; return the problem's incident."""
        self.version += 1
        record = None if task is None else self._tasks[task]
        incident = Incident(self._kept.count + 1, kind, self._at(now), task, host=host, cause=cause)
        incident.step = self.standstill.newest
        if record is not None:
            incident.role, incident.index, incident.host = record.plan.role, record.plan.index, record.plan.host
            incident.attempt, incident.tried, log = record.attempt, record.failures + 1, log or record.log
        incident.learn(exit_code, log, lines, stack)
        root = self._root_of(incident, now)
        if root is not None:
            root.followed.add(incident.as_consequence())
            root.restarted_s = None if root.task == task else root.restarted_s
            return root
        self._hold(incident, now)
        return incident

    def failed(self, event: Exited, now: float) -> Incident:
        """Record that a task's process ended by itself; return the incident of that end."""
        open_one = self._down.get(event.task)
        if open_one is not None and open_one.exit_code is None and open_one.attempt == event.attempt:
            self.version += 1
            log = self._tasks[event.task].log
            open_one.learn(event.exit_code, log, event.lines, event.stack)  # it was ended for what it did
            open_one.cause = event.cause if event.kind == open_one.kind else open_one.cause
            return open_one
        kind = event.kind or ("not-started" if event.exit_code is None else "exit")
        return self.began(
            kind, now, event.task, cause=event.cause, exit_code=event.exit_code, lines=event.lines, stack=event.stack
        )

    def did(self, what: str, now: float, incident: Optional[Incident] = None) -> None:
        """Record an action about an incident; without one, about the newest incident."""
        incident = incident or self._newest
        if incident is not None:
            self.version += 1
            incident.did.add(Deed(round(self._at(now), 3), what))

    def _root_of(self, incident: Incident, now: float) -> Optional[Incident]:
        """Return the incident that this one only follows from; None for a first cause."""
        if incident.task in self._down:
            return self._down[incident.task]
        earlier = self._lately.get(incident.task or "")
        if earlier is not None and (earlier.open or (not self._tells and self._is_recent(earlier, now))):
            self._reopen(earlier)
            return earlier
        if incident.kind != LOST:
            return None
        for peer in peers(incident.cause or ""):
            if peer in self._down:
                return self._down[peer]
        recent = self._root is not None and (self._root.open or now - self._root_over_at <= WINDOW_S)
        return self._root if recent else self._recent_causeless(incident)

    def _is_recent(self, incident: Incident, now: float) -> bool:
        """Return whether the incident's task resumed at most ``STEADY_S`` ago, or has not yet.

        The cause of the task's next failure may then be the same.
        """
        went_on_s = incident.again_s or incident.restarted_s or 0.0
        return incident.open or self._at(now) - incident.at_s - went_on_s <= STEADY_S

    def _reopen(self, incident: Incident) -> None:
        """Reopen an incident: its task has failed again before its recovery was certain."""
        incident.open, incident.again_s, incident.restarted_s = True, None, None
        self._behind.pop(id(incident), None)
        self._down[incident.task or ""] = incident

    def _note(self, incident: Incident, now: float) -> None:
        """Keep the first of a task's incidents that came in quick succession.

        Incidents that come so soon after each other may be the same.
        """
        task = incident.task or ""
        before = self._lately.get(task)
        if before is None or not self._is_recent(before, now):
            self._first[task] = incident
        self._lately[task] = incident

    def _recent_causeless(self, incident: Incident) -> Optional[Incident]:
        earlier, window_s = self._causeless, HOST_WINDOW_S if incident.kind in OF_A_HOST else WINDOW_S
        return earlier if earlier is not None and incident.at_s - earlier.at_s <= window_s else None

    def _hold(self, incident: Incident, now: float) -> None:
        """Keep an incident, in the place of an earlier lost connection that followed from it."""
        earlier = self._recent_causeless(incident)
        if incident.kind == LOST:
            self._causeless = incident
        elif _can_cut(incident):
            self._root, self._causeless = incident, None
        if earlier is not None and self._root is incident:
            self._put_below(earlier, incident)
        else:
            self._kept.add(incident)
        self._newest = incident
        if incident.task is not None:
            self._note(incident, now)
            self._down[incident.task] = incident
        elif incident.kind in OF_A_HOST:
            self._unstarted.append(incident)
        else:
            self._serve(incident, now)

    def _put_below(self, earlier: Incident, cause: Incident) -> None:
        """Make an incident a consequence of its cause, which takes its place."""
        self._kept.replace(earlier, cause)
        cause.number = earlier.number
        cause.followed.add(earlier.as_consequence())
        cause.followed.extend(earlier.followed)
        cause.did.extend(earlier.did)
        earlier.open = False
        if self.fatal is earlier:
            self.fatal, self.verdict = cause, _so(cause, f"{earlier.title} failed: {earlier.cause}")
        if earlier.task is not None and self._down.get(earlier.task) is earlier:
            del self._down[earlier.task]

    def _at(self, now: float) -> float:
        """Return the seconds since the run began; its first event is the beginning."""
        if self.began_at is None:
            self.began_at = now
        return now - self.began_at

    # -- how it went on

    def started(self, task: str, now: float) -> None:
        """Record the start of a task's process."""
        self._at(now)
        for incident in self._unstarted:
            self._serve(incident, now)
        self._unstarted = []
        self.standstill.began_anew(task)
        own = self._down.get(task)
        if own is None:
            return
        own.mark = self.standstill.advances
        self._served.pop(id(own), None)
        self._restarted(own, now)

    def advanced(self, task: str, progress: Mapping[str, Any], now: float) -> None:
        """Record a task's report of its progress."""
        role, own = self._tasks[task].plan.role, self._down.get(task)
        trained = role in TRAINERS and self.standstill.tell(task, progress, now, self._tasks[task].plan.chief)
        if own is not None and (trained or role == "evaluator"):
            self._back(own, now)
        elif own is not None and role == "ps" and id(own) not in self._served:
            self._serve(own, now)
        if trained:
            served, self._served = self._served, {}
            for incident in served.values():
                self._back(incident, now)
        if self._behind and next(iter(self._behind.values())).mark < self.standstill.advances:
            behind, self._behind = self._behind, {}
            for incident in behind.values():
                self._over(incident, now)

    def _serve(self, incident: Incident, now: float) -> None:
        """Keep an incident open until any worker trains on.

        The incident of programs that report no progress is over now.
        """
        incident.mark = self.standstill.advances
        if self._tells:
            self._served[id(incident)] = incident
        else:
            self._restarted(incident, now)

    def _restarted(self, incident: Incident, now: float) -> None:
        """Record that the next process of an incident exists.

        For programs that report no progress, nothing more will be known.
        """
        self.version += 1
        incident.restarted_s = self._at(now) - incident.at_s
        if not self._tells:
            self._down.pop(incident.task or "", None)
            self._over(incident, now)

    def _back(self, incident: Incident, now: float) -> None:
        """Record that the task or host of an incident takes part again."""
        self.version += 1
        incident.again_s = self._at(now) - incident.at_s
        self._down.pop(incident.task or "", None)
        self._count_lost(incident, now)
        if incident.role != "evaluator" and incident.mark >= self.standstill.advances:
            self._behind[id(incident)] = incident
        else:
            self._over(incident, now)

    def _over(self, incident: Incident, now: float) -> None:
        self.version += 1
        incident.open = False
        if self._tells:
            incident.lost_seconds = self._count_lost(incident, now)
        if incident is self._root:
            self._root_over_at = now

    def _count_lost(self, incident: Incident, now: float) -> float:
        """Record the steps lost since an incident began; return the seconds that training stood."""
        since = now - self._at(now) + incident.at_s
        incident.lost_steps, seconds = self.standstill.lost_since(since)
        incident.resumed_from = self.standstill.resumed_since(since)
        return seconds

    # -- what is told

    def ends_the_run(self, incident: Incident, cause: str) -> str:
        """Record the incident that the run fails for, and return the cause.

        The first incident that the run fails for stands.
        """
        if self.fatal is None:
            self.fatal, self.verdict = incident, cause
        return cause

    def why(self, incident: Incident, event: Exited, of: int) -> str:
        """Record and return, in a line, the first cause of a run's failure.

        The run fails because a task is not restarted.

        Args:
          incident: the incident of the task's last failure.
          event: that failure.
          of: the number of attempts that a task has.
        """
        task, cause = self._tasks[event.task], event.cause or ""
        title, tried = (
            f"{event.task}@{task.plan.host}",
            f" (attempt {task.failures + 1} of {of})" if task.failures else "",
        )
        if incident.task != event.task:
            return self.ends_the_run(incident, _so(incident, f"{title} failed{tried}: {cause}"))
        first = self._first.get(event.task, incident)
        if first.cause != cause:
            text = f"{title} (attempt {first.tried} of {of}): {first.cause}; in the end: {cause}"
            return self.ends_the_run(first, text)
        return self.ends_the_run(first, f"{title}{tried}: {cause}")

    def failed_late(self, event: Exited, now: float) -> None:
        """Record that a task ended by itself while the run was ending already.

        The task's end may be the reason why another task had lost its connection.
        """
        if self.fatal is not None and self.fatal.kind == LOST and event.kind not in (None, LOST):
            self.failed(event, now)

    def number_of_cause(self, result: Optional[str]) -> Optional[int]:
        """Return the number of the incident that the run has failed for."""
        return self.fatal.number if self.fatal is not None and result == "failed" else None

    def statuses(self) -> List[IncidentStatus]:
        """Return the first incident and the newest, oldest first; the same list until something changes."""
        if self._statuses_of != self.version:
            self._statuses, self._statuses_of = [incident.status() for incident in self._kept], self.version
        return self._statuses


def restarted(task: TaskRecord, pause_s: float, of: int) -> str:
    """Describe the restart of a failed task; ``of`` is the number of its attempts."""
    return f"{task.plan.name} restarted after {pause_s:.1f} s, attempt {task.failures + 1} of {of}"


def peers(text: str) -> List[str]:
    """Return the tasks that a text names: ``ps:0``, ``/job:ps/replica:0/task:0``.

    The text may name a task as we do or as TensorFlow does.
    """
    return [name_of(role, int(index)) for role, index in _TASK.findall(text)]


def _can_cut(incident: Incident) -> bool:
    """Return whether other tasks may lose their connection because of the incident."""
    return incident.kind not in ("checkpoint", "non-finite", LOST) and incident.role != "evaluator"


def _so(incident: Incident, what: str) -> str:
    cause = incident.cause or incident.kind
    return f"{cause if cause.startswith(incident.title) else f'{incident.title}: {cause}'}; so {what}"
