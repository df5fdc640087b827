"""The incidents of a run: each problem, its consequences, and the time at which training resumed.

The incidents depend only on the calls and their times. The supervisor reports every exit, every start and all progress.
Code that notices another problem (a frozen task, a lost host) calls ``begin``, and code that acts on a problem calls
``record_action``.

An event begins an incident, or is a consequence of an earlier incident; ``root_cause`` decides. An incident is over
when its task takes part in training again and a step is newer than any before. For a program that reports no progress,
the incident is over when the next process exists. The cost of an event does not depend on the number of tasks.
"""

from typing import Any, Dict, List, Mapping, Optional, Sequence, Set

from cluster.protocol.failure_kinds import EXIT, LOST_CONNECTION
from cluster.task import TRAINERS
from launch.agent.protocol.messages import Exited
from launch.agent.supervision.effective import Effective
from launch.agent.supervision.incident import OF_A_HOST, History, Incident, Returns, restore
from launch.agent.supervision.root_cause import Blame, Cuts, Relapses, blame, blame_root, is_recent
from launch.agent.supervision.stall import Stalls
from launch.agent.supervision.task_records import TaskRecord
from launch.status.incident_status import Deed, IncidentStatus

NEWEST = 12  # the kept incidents in addition to the first


class Incidents:
    """The incidents of one run.

    Args:
      tasks: the tasks by name; ``Incidents`` reads the role, the host, the attempts and the log of each task.
      has_progress: whether tasks report their progress; tasks of ``command:`` may begin to report it later.
    """

    def __init__(self, tasks: Mapping[str, TaskRecord], has_progress: bool = True):
        self.programs: Set[str] = set()  # tasks of ``command:`` that have reported a step
        self.stalls, self.effective = Stalls(), Effective()
        self.blame: Optional[Blame] = None  # for the failure of the run
        self._tasks, self.has_progress = tasks, has_progress
        self._began_at: Optional[float] = None  # of the run, on the supervisor's clock
        self._history: History[Incident] = History(1, NEWEST)
        self._newest: Optional[Incident] = None
        self._relapses, self._cuts, self._returns = Relapses(), Cuts(), Returns()
        self._open: Dict[str, Incident] = {}  # by task: the incident that keeps the task from training
        self._awaiting_start: List[Incident] = []  # of hosts, and of tasks that left, until a task starts afterwards
        self._on_host: Dict[str, List[str]] = {}  # tasks
        for name, each in tasks.items():
            self._on_host.setdefault(each.plan.host, []).append(name)
        self._gone: Set[str] = set()  # tasks that a host's incident ends, until each starts: their reports are old
        self._awaiting_step: Dict[int, Incident] = {}  # by id, until any worker takes a step
        self._awaiting_newer: Dict[int, Incident] = {}  # by id, until a step is newer than any before
        self._changed = False  # since ``statuses`` was last called
        self._statuses: List[IncidentStatus] = []

    def restore(self, shown: Sequence[IncidentStatus], began_at: float) -> None:
        """Restore the incidents in an earlier supervisor's status; all of these incidents are over."""
        self._began_at, self._changed = began_at, True
        for each in shown:
            self._history.add(restore(each))
            self._history.count = each.number

    def begin(
        self,
        kind: str,
        now: float,
        task: Optional[str] = None,
        host: Optional[str] = None,
        cause: Optional[str] = None,
        end: Optional[Exited] = None,
    ) -> Incident:
        """Record a problem, such as the ``end`` of a task; return its incident, or the earlier one that caused it."""
        self._changed = True
        incident = Incident(self._history.count + 1, kind, self.run_time(now), task, host=host, cause=cause)
        incident.step = self.stalls.newest
        if task is not None:
            incident.concern(self._tasks[task])
        if end is not None:
            incident.learn(end)
        root = self._root_of(incident, now)
        if root is None:
            self._keep(incident, now)
            return incident
        root.followed.add(incident.as_consequence())
        if root.task == task:
            root.restarted_s = None
            self._awaiting_step.pop(id(root), None)  # until the task is back once more
        return root

    def record_exit(self, event: Exited, now: float) -> Incident:
        """Record that a task's process ended by itself; return the incident of this end."""
        known = self._open.get(event.task)
        if known is not None and known.exit_code is None and known.attempt == event.attempt:
            self._changed = True
            known.learn(event)  # the known problem has ended the process
            known.log = known.log or self._tasks[event.task].log
            known.cause = event.cause if event.kind == known.kind else known.cause
            return known
        kind = event.kind or ("not-started" if event.exit_code is None else EXIT)
        return self.begin(kind, now, event.task, cause=event.cause, end=event)

    def record_late_exit(self, event: Exited, now: float) -> None:
        """Record that a task ended after the run failed, if this may explain another task's lost connection."""
        lost = self.blame is not None and self.blame.incident.kind == LOST_CONNECTION
        if lost and event.kind not in (None, LOST_CONNECTION):
            self.record_exit(event, now)

    def awaits_cause(self, now: float) -> bool:
        """Return whether the end of another task may still turn out to be the cause of a lost connection."""
        return self._cuts.awaits_cause(self.run_time(now))

    def record_action(self, what: str, now: float, incident: Optional[Incident] = None) -> None:
        """Record the action ``what`` for ``incident``; where ``incident`` is None, for the newest incident."""
        incident = incident or self._newest
        if incident is not None:
            self._changed = True
            incident.did.add(Deed(round(self.run_time(now), 3), what))

    def _root_of(self, incident: Incident, now: float) -> Optional[Incident]:
        """Return the incident that caused this incident; None for a first cause."""
        if incident.task in self._open:
            return self._open[incident.task]
        earlier = self._relapses.newest(incident.task)
        unproven = not self.has_progress and earlier is not None and is_recent(earlier, self.run_time(now))
        if earlier is not None and (earlier.open or unproven):
            self._reopen(earlier)
            return earlier
        return self._cuts.cause_of(incident, self._open, now)

    def _reopen(self, incident: Incident) -> None:
        """Reopen an incident whose task has failed again before its recovery was certain."""
        incident.open, incident.again_s, incident.restarted_s = True, None, None
        self._awaiting_newer.pop(id(incident), None)
        self._open[incident.task or ""] = incident

    def _keep(self, incident: Incident, now: float) -> None:
        """Keep an incident; the incident replaces an earlier lost connection that is its consequence."""
        earlier = self._cuts.add(incident)
        if earlier is not None:
            self._put_below(earlier, incident)
        else:
            self._history.add(incident)
        self._newest = incident
        if incident.task is not None:
            self._relapses.add(incident, self.run_time(now))
            self._open[incident.task] = incident
        elif incident.kind in OF_A_HOST:
            self._returns.clear()  # what is lost from now on belongs to this incident
            self._awaiting_start.append(incident)
            self.expect_starts(self._on_host.get(incident.host or "", ()))
        else:
            self._await_step(incident, now)

    def _put_below(self, earlier: Incident, cause: Incident) -> None:
        """Turn an incident into a consequence of its cause; the cause takes the incident's place."""
        self._history.replace(earlier, cause)
        self._relapses.discard(earlier)
        cause.take_over(earlier)
        if self.blame is not None and self.blame.incident is earlier:
            self.blame = blame_root(cause, earlier)
        if earlier.task is not None and self._open.get(earlier.task) is earlier:
            del self._open[earlier.task]

    def run_time(self, now: float) -> float:
        """Return the seconds since the run began; the run begins with its first event."""
        if self._began_at is None:
            self._began_at = now
        return now - self._began_at

    # -- recovery

    def expect_starts(self, tasks: Sequence[str]) -> None:
        """Treat reports of these tasks as outdated until the tasks start again: a host's incident has ended them."""
        self._gone.update(tasks)

    def leave(self, task: str) -> None:
        """Record that training continues without a task; the task's incident is over once the other tasks train."""
        if task in self._open:
            self._awaiting_start.append(self._open.pop(task))

    def expect_restart(self, incident: Incident, tasks: Sequence[str] = ()) -> None:
        """Expect ``tasks`` to restart because the incident's host returns; the incident then includes their losses."""
        self._returns.expect(incident, tasks)

    def record_start(self, task: str, now: float) -> None:
        """Record the start of a task's process."""
        self.run_time(now)
        self._returns.record_start(task, self.stalls.advances)
        while self._awaiting_start:
            self._await_step(self._awaiting_start.pop(0), now)
        self._gone.discard(task)
        self.stalls.restart_examples(task)
        own = self._open.get(task)
        if own is None:
            return
        own.advances = self.stalls.advances
        self._awaiting_step.pop(id(own), None)
        self._record_restart(own, now)
        if self.programs and task not in self.programs:
            self._await_step(own, now)

    @property
    def awaits_start(self) -> bool:
        """Return whether the incident of a host stays open until a task starts."""
        return bool(self._awaiting_start)

    def go_on(self, now: float) -> None:
        """Stop waiting for a task to start after a host's incident: the host had no tasks, or they were drained."""
        awaiting, self._awaiting_start = self._awaiting_start, []
        settle = self._await_step if self.has_progress else self._close
        for incident in awaiting:
            settle(incident, now)

    def record_progress(self, task: str, progress: Mapping[str, Any], now: float) -> None:
        """Record a task's report of its progress."""
        plan, own = self._tasks[task].plan, self._open.get(task)
        trained = plan.role in TRAINERS and self.stalls.record(task, progress, now, plan.chief, task in self._gone)
        if own is not None and (trained or plan.role == "evaluator"):
            self._resume(own, now)
        elif own is not None and plan.role == "ps" and id(own) not in self._awaiting_step:
            self._await_step(own, now)
        if trained:
            if self.stalls.went_back_to is not None:
                self.effective.go_back(self.stalls.went_back_to)
                for incident in [each for each in self._history if each.open]:  # the next lead knows what is shown
                    self._count_lost(incident, now)
            self.effective.record(progress["step"], progress, plan.chief, now)
            awaiting, self._awaiting_step = self._awaiting_step, {}
            for incident in awaiting.values():
                self._resume(incident, now)
            for incident in self._returns.counted(self.stalls.advances):
                self._count_lost(incident, now)
        if self._awaiting_newer and next(iter(self._awaiting_newer.values())).advances < self.stalls.advances:
            awaiting, self._awaiting_newer = self._awaiting_newer, {}
            for incident in awaiting.values():
                self._close(incident, now)

    def record_end(self, task: str, now: float) -> None:
        """Close the incident of a task that has succeeded without a further step."""
        own = self._open.pop(task, None)
        if own is not None:
            self._awaiting_step.pop(id(own), None)
            self._close(own, now)

    def _await_step(self, incident: Incident, now: float) -> None:
        """Keep an incident open until any worker takes a step; a program without progress ends it now."""
        incident.advances = self.stalls.advances
        if self.has_progress:
            self._awaiting_step[id(incident)] = incident
        else:
            self._record_restart(incident, now)

    def _record_restart(self, incident: Incident, now: float) -> None:
        """Record that the next process of an incident exists, the last event of a program without progress."""
        self._changed = True
        incident.restarted_s = self.run_time(now) - incident.at_s
        if not self.has_progress:
            self._open.pop(incident.task or "", None)
            self._close(incident, now)

    def _resume(self, incident: Incident, now: float) -> None:
        """Record that the task or host of an incident takes part again."""
        incident.again_s = self.run_time(now) - incident.at_s
        self._open.pop(incident.task or "", None)
        self._count_lost(incident, now)
        if incident.role != "evaluator" and incident.advances >= self.stalls.advances:
            self._awaiting_newer[id(incident)] = incident
        else:
            self._close(incident, now)

    def _close(self, incident: Incident, now: float) -> None:
        self._changed, incident.open = True, False
        if self.has_progress:
            incident.lost_seconds = self._count_lost(incident, now)
        self._cuts.close(incident, now)

    def _count_lost(self, incident: Incident, now: float) -> float:
        """Record the steps lost since an incident began; return the seconds for which training stood."""
        self._changed, since = True, now - self.run_time(now) + incident.at_s
        incident.lost_steps, seconds = self.stalls.losses_since(since)
        incident.resumed_from = self.stalls.resumption_since(since)
        return seconds

    # -- the failure of the run

    def blame_incident(self, incident: Incident, cause: str) -> str:
        """Record the incident that fails the run, unless an earlier call has recorded one; return ``cause``."""
        self.blame = self.blame or Blame(incident, cause)
        return cause

    def blame_task(self, event: Exited, incident: Incident, attempts: int, why: str = "") -> str:
        """Record that the run failed with a task that may not restart; return the cause, followed by ``why``."""
        first = self._relapses.first(event.task, incident)
        found = blame(self._tasks[event.task], event, incident, first, attempts)
        return self.blame_incident(found.incident, found.line + why)

    def statuses(self) -> List[IncidentStatus]:
        """Return the first and the newest incidents, oldest first; the list object is the same until one changes."""
        if self._changed:
            self._statuses, self._changed = [incident.status() for incident in self._history], False
        return self._statuses
