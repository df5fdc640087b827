"""The formations of a run: the first, and the next when hosts are lost or return.

A host is lost only when its agent has surely killed the tasks there. The run then ends the rest of the
formation, with ``END_S`` of grace. Then the run starts the next formation on the hosts that are there, from
the last checkpoint. So no process of one formation ever meets one of another.

A host that returns waits for ``SETTLE_S``, so that the run does not at once take back one that comes and goes.
The host also waits until the formation that trains has done so for ``REST_S``. After every loss but the first,
the host waits twice as long as before, from ``PATIENCE_S`` on. Then the chief saves, and the next formation
includes the host.

An operator drains tasks, and lets them train again, by a ``Handover``.

Nothing here changes the phase of the run: the methods return a ``Decision``, which the supervisor carries out.
"""

import math
from dataclasses import dataclass, replace
from typing import Collection, Dict, List, NamedTuple, Optional, Sequence, Set

from cluster.protocol.save_request import HOLD
from launch.agent.protocol.messages import DrainRequested, Exited, Order, Prepare, Prepared, Start, Stop
from launch.agent.supervision.absence import Absence
from launch.agent.supervision.formation import Formation, describe, form, full_sizes, shortage, sizes
from launch.agent.supervision.handover import Handover
from launch.agent.supervision.incident import Incident
from launch.agent.supervision.incidents import Incidents
from launch.agent.supervision.run_state import Phase
from launch.agent.supervision.saving import Saving
from launch.agent.supervision.task_records import DRAINED, SPARE, Roster, TaskRecord
from launch.agent.supervision.wishes import Wishes
from launch.agent.wire.run_request import RunPlan
from launch.status.run import ALIVE, FormationStatus

END_S = 1.0
REST_S = 15.0


class Failure(NamedTuple):
    """The reason why a run cannot go on."""

    incident: Incident
    cause: str


@dataclass(frozen=True)
class Decision:
    """The consequences of a host that is lost or returns.

    Attributes:
      orders: to the agents of the tasks.
      phase: the phase that the run enters; None where it stays in its phase.
      failure: the reason why the run fails; None where it goes on.
    """

    orders: Sequence[Order] = ()
    phase: Optional[Phase] = None
    failure: Optional[Failure] = None


NOTHING = Decision()


class Formations:
    """The formations of one run, one after the other, and the hosts that are out of them.

    ``current`` is the formation that trains, or that is to train once every host has joined.
    """

    def __init__(self, plan: RunPlan, roster: Roster, incidents: Incidents, saving: Saving):
        self.current: Formation = form(0, plan.tasks, ())
        self._plan, self._roster, self._incidents, self._saving = plan, roster, incidents, saving
        self._absences: Dict[str, Absence] = {}  # of every host that was ever lost
        self._out: Dict[str, Absence] = {}  # of those that are not in the formation now
        self._begun: Set[str] = set()  # tasks that have had a process
        self._rested_at = math.inf
        self._saves = False  # before a host is taken back
        self.wishes = Wishes(plan, roster)
        self._handovers = 0
        self._handover: Optional[Handover] = None
        self._problem: Optional[str] = None  # of the newest one
        self._first_loss: Optional[Failure] = None  # since the run last trained
        self._losses: List[Incident] = []  # since the newest formation

    @property
    def is_elastic(self) -> bool:
        """Return whether the run goes on without lost hosts."""
        return self._plan.min_workers is not None

    @property
    def is_up(self) -> bool:
        """Return whether every task of the formation is up.

        A task is up where it runs, or has done its part.
        An evaluator that failed counts as up: the run does without it.
        """
        return self._roster.number("running", "succeeded", "failed") >= len(self.current.indices)

    @property
    def out(self) -> Collection[str]:
        """Return the hosts that are lost, or wait to be taken back."""
        return self._out

    def can_change(self, phase: Phase) -> bool:
        """Return whether another formation may be prepared now, beside the one that trains."""
        return phase is Phase.TRAINING and self.is_up and self._handover is None

    def start_task(self, task: TaskRecord) -> Start:
        """Return the order that starts a task's next attempt, at its place in the formation."""
        name = task.plan.name
        self._begun.add(name)
        self._roster.begin_attempt(task)
        is_as_planned = not (self.current.number or self._out or self.wishes.by_name)
        if is_as_planned:  # its agent has this cluster from the launcher
            return Start(name, task.attempt)
        return Start(name, task.attempt, self.current.cluster, self.current.indices[name])

    def name_as_run(self, event: Exited) -> Exited:
        """Return a task's end, whose cause has the names of tasks in the run.

        The task itself knows only the names of its formation.
        """
        if not self.current.number or event.cause is None:
            return event
        return replace(event, cause=self.current.name_as_run(event.cause))

    # -- the first formation, and the next

    def start_first(self, now: float) -> Decision:
        """Start formation 0: every host has joined, or is out."""
        self._out = {host: absence for host, absence in self._out.items() if absence.ready_at == math.inf}
        return self._start(self._form(0, self._out), now)

    def start_next(self, now: float) -> Decision:
        """Start the next formation: no process of the one before is left."""
        self._take_in(now)
        return self._start(self._form(self.current.number + 1, self._out), now)

    def _form(self, number: int, out: Collection[str]) -> Formation:
        return form(number, self._plan.tasks, out, self.wishes.by_name)

    def _start(self, following: Formation, now: float) -> Decision:
        missing = shortage(following, self._plan.tasks, self._plan.min_workers or 0)
        if missing is not None and self._first_loss is not None:
            incident, cause = self._first_loss
            return Decision(failure=Failure(incident, f"{cause}; {missing}"))
        self.current, self._rested_at, self._handover = following, math.inf, None
        without = f"continues without {', '.join(self._out)}: " if self._out else ""
        for incident in self._losses:
            self._incidents.record_action(
                f"{without}{describe(following, self._plan.tasks, self.wishes.by_name)}", now, incident
            )
        self._losses = []
        self._show_spares()
        return Decision([self._start_in_turn(name) for name in following.tasks], Phase.TRAINING)

    def _start_in_turn(self, name: str) -> Order:
        task = self._roster.by_name[name]
        task.attempt = self._next_attempt(name)
        return self.start_task(task)

    def _show_spares(self) -> None:
        """Mark the tasks that are there and not needed as spares, or as drained."""
        for name, task in self._roster.by_name.items():
            if name not in self.current.indices and task.plan.host not in self._out:
                self._roster.turn(task, "stopped", process=False)
                task.cause = DRAINED if self.wishes.by_name.get(name) is False else SPARE
                task.samples.clear()

    # -- hosts that are lost

    def drop(self, host: str, loss: Failure, phase: Phase) -> Decision:
        """Continue the run without a lost host, or fail the run."""
        closing = phase in (Phase.CLOSING, Phase.ENDED)
        tasks = self._roster.by_host[host]
        needed = any(task.state in ALIVE and task.plan.name in self.current.indices for task in tasks)
        self._show_lost(host, loss.cause, closing)
        if closing:
            return NOTHING
        if not self.is_elastic:
            return Decision(failure=loss)
        self._out[host] = self._absences.setdefault(host, Absence())
        self._out[host].begin(loss.incident)
        self._losses.append(loss.incident)
        decision = self._adapt() if phase is Phase.TRAINING and needed else NOTHING
        if phase is not Phase.TRAINING or decision.phase is not None:
            self._first_loss = self._first_loss or loss
        return decision

    def _show_lost(self, host: str, cause: str, closing: bool) -> None:
        for task in self._roster.by_host[host]:
            if task.state in ALIVE or (task.state in ("stopped", "lost") and not closing):
                self._roster.turn(task, "lost", process=False)
                task.cause, task.progress = cause, {}
                task.samples.clear()  # it has no part any more in what the run does a second

    def _adapt(self) -> Decision:
        """Return what follows from a change of the hosts that are there."""
        following = self._form(self.current.number, self._out)
        if following.cluster != self.current.cluster:
            return self._end()
        # An evaluator, which only follows, or a spare that goes on waiting.
        came = [name for name in following.tasks if name not in self.current.indices]
        self.current = following
        self._show_spares()
        return Decision([self._start_in_turn(name) for name in came])

    def _end(self) -> Decision:
        """End every process of the formation."""
        self._saves, self._handover = False, None
        orders: List[Order] = []
        for name in self.current.tasks:
            task = self._roster.by_name[name]
            if task.process:
                orders.append(Stop(name, END_S, task.attempt))
            elif task.state in ALIVE:
                self._roster.turn(task, "restarting", process=False)
        return Decision(orders, Phase.REFORMING)

    # -- GPUs that fail

    def leave_out(self, tasks: Sequence[str], loss: Failure, phase: Phase) -> Decision:
        """Continue without tasks whose GPU has failed, as if an operator had drained them, but without their last step.

        Where the run cannot be without them, it goes on with them: they may still work, or fail.
        """
        request = DrainRequested(list(tasks))
        if not self.is_elastic or phase is not Phase.TRAINING or self.wishes.refusals(request, self._out):
            return NOTHING
        self.wishes.by_name = self.wishes.joined_by(request)
        self._losses.append(loss.incident)
        self._first_loss = self._first_loss or loss
        return self._adapt()

    # -- hosts that return

    def admit(self, host: str, now: float) -> bool:
        """Record that a host's agent is connected; return whether the host was out."""
        if host not in self._out:
            return False
        self._out[host].end(now)
        for task in self._roster.by_host[host]:
            task.cause = f"{host} is back, and waits to join the run again"
        return True

    def take_back(self, now: float) -> Decision:
        """Return what follows for the hosts that are out, while the formation trains."""
        if self._handover is not None:
            return self._hand_over(self._handover, now)
        if self._rested_at == math.inf and self.is_up:
            self._rested_at, self._first_loss = now + REST_S, None
        ready = self._ready(now) if self._out and now >= self._rested_at else []
        if not ready or (self._saves and self._saving.is_pending(now)):
            return NOTHING
        asked = self._saving.ask(now, HOLD) if self._changes_cluster(ready) and not self._saves else []
        self._saves = bool(asked)
        if asked:
            return Decision(asked)
        self._take_in(now)
        return self._adapt()

    def _ready(self, now: float) -> List[str]:
        return [host for host, absence in self._out.items() if now >= absence.ready_at]

    def _changes_cluster(self, hosts: List[str]) -> bool:
        """Return whether the return of these hosts needs a new formation.

        An evaluator, or a spare, needs none.
        """
        out = [host for host in self._out if host not in hosts]
        return self._form(0, out).cluster != self.current.cluster

    def _take_in(self, now: float) -> None:
        """Remove the hosts that may be taken back from the hosts that are out."""
        for host in self._ready(now):
            incident = self._out.pop(host).incident
            self._incidents.record_action(f"{host} joined again", now, incident)

    # -- tasks that an operator drains, or lets train again

    def refusals(self, request: DrainRequested, phase: Phase) -> List[str]:
        """Return the reasons for which a request cannot be; empty where it can."""
        if not self.is_elastic:
            return ["expected a run with the key elastic; set elastic: {min_workers: 1} and start it with --resume"]
        if not self.can_change(phase):
            return ["expected a run that trains, found one that starts or changes; try again when it trains"]
        return self.wishes.refusals(request, self._out)

    def drain(self, request: DrainRequested, phase: Phase, now: float) -> Decision:
        """Begin to leave tasks out, or to take them back."""
        if self.refusals(request, phase):
            return NOTHING
        before, self._problem = self.wishes.by_name, None
        self.wishes.by_name = self.wishes.joined_by(request)
        following = self._form(0, self._out)
        if following.cluster == self.current.cluster:
            return self._adapt()
        self._handovers += 1
        orders = [
            Prepare(name, self._next_attempt(name), following.cluster, index, self._handovers)
            for name, index in following.indices.items()
        ]
        self._handover = Handover(before, orders, self._saving, now)
        return Decision(orders)

    def _next_attempt(self, name: str) -> int:
        return self._roster.by_name[name].attempt + (name in self._begun)

    def record_prepared(self, event: Prepared) -> None:
        """Record that a process waits for its place."""
        if self._handover is not None:
            self._handover.record(event)

    def _hand_over(self, handover: Handover, now: float) -> Decision:
        orders = handover.next_orders(now)
        if handover.problem is not None:
            self.wishes.by_name, self._problem, self._handover = handover.before, handover.problem, None
        return self._end() if handover.is_over else Decision(orders)

    # -- what is shown

    def status(self, phase: Phase) -> Optional[FormationStatus]:
        """Return the status of the formation; None where a lost host ends the run."""
        if not self.is_elastic:
            return None
        workers, servers = sizes(self.current.indices)
        all_workers, all_servers = full_sizes(self._plan.tasks, self.wishes.by_name)
        return FormationStatus(
            number=self.current.number,
            workers=workers,
            of_workers=all_workers,
            ps=servers,
            of_ps=all_servers,
            without=list(self._out),
            forming=phase is Phase.REFORMING,
            drained=self.wishes.named(False),
            added=self.wishes.named(True),
            changing=self._handover is not None,
            problem=self._problem,
        )
