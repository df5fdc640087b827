"""Re-form an elastic run when its hosts are lost and when they return.

A host is lost only when its agent has surely killed the tasks there. The run then ends the rest of the
formation, with ``END_S`` of grace. Then the run starts the next formation on the hosts that are there, from
the last checkpoint. So no process of one formation ever meets one of another.

A host that returns waits for ``SETTLE_S``, so that the run does not at once take back one that comes and goes.
The host also waits until the formation that trains has done so for ``REST_S``. After every loss but the first,
the host waits twice as long as before, from ``PATIENCE_S`` on. Then the chief saves, and the next formation
includes the host.
"""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Callable, Dict, List, Optional, Set, Tuple

from launch.agent.protocol.messages import Exited, Order, Start, Stop
from launch.agent.supervision.formation import Formation, described, form, sizes, too_few, wanted
from launch.agent.supervision.incident import Incident
from launch.agent.supervision.record import SPARE, TaskRecord
from launch.status.run import FormationStatus
from launch.status.states import ALIVE

if TYPE_CHECKING:
    from launch.agent.supervision.supervise import Supervisor

END_S = 1.0
SETTLE_S = 3.0
REST_S = 15.0
PATIENCE_S = 30.0
LONGEST_PATIENCE_S = 900.0
PHASE = "re-forming"


@dataclass
class Out:
    """A host that was lost, and the number of its losses.

    ``ready_at`` is the time from which the run may take the host back; infinite while the host is silent.
    """

    losses: int = 0
    ready_at: float = math.inf
    incident: Optional[Incident] = None  # of its newest loss

    def lost(self, incident: Incident) -> None:
        """Record a loss of the host, which is silent from now on."""
        self.losses, self.ready_at, self.incident = self.losses + 1, math.inf, incident

    def back(self, now: float) -> None:
        """Record the return of the host."""
        again = self.losses - 1
        patience_s = min(LONGEST_PATIENCE_S, PATIENCE_S * 2 ** (again - 1)) if again else 0.0
        self.ready_at = min(self.ready_at, now + max(SETTLE_S, patience_s))


@dataclass(frozen=True)
class Hands:
    """The tasks of a run by host, and the actions of re-forming on it."""

    on: Dict[str, List[TaskRecord]]
    turn: Callable[[TaskRecord, str, bool], None]
    start: Callable[[TaskRecord], Order]
    fail: Callable[[Incident, str, float], None]


class Reforming:
    """The formations of one run, and the hosts that are out of them.

    ``Reforming`` changes the phase of its run.
    """

    def __init__(self, run: "Supervisor", hands: Hands):
        self._run, self._plans, self._hands = run, run.plan.tasks, hands
        self.formation: Formation = form(0, self._plans, ())
        self._lost: Dict[str, Out] = {}  # every host that ever was
        self._out: Dict[str, Out] = {}  # those that are not in the formation now
        self._begun: Set[str] = set()  # tasks that have had a process
        self._rested_at = math.inf
        self._saves = False  # before a host is taken back
        self._first: Optional[Tuple[Incident, str]] = None  # what was lost since the run last trained
        self._losses: List[Incident] = []  # since the newest formation

    @property
    def elastic(self) -> bool:
        """Return whether the run goes on without lost hosts."""
        return self._run.plan.min_workers is not None

    def place(self, task: TaskRecord) -> Start:
        """Return the order that starts a task at its place in the formation."""
        name = task.plan.name
        self._begun.add(name)
        if not self.formation.number and not self._out:  # as the launcher told its host
            return Start(name, task.attempt)
        return Start(name, task.attempt, self.formation.cluster, self.formation.indices[name])

    def in_run(self, event: Exited) -> Exited:
        """Return a task's end, whose cause has the names of tasks in the run.

        The task itself knows only the names of its formation.
        """
        if not self.formation.number or event.cause is None:
            return event
        return replace(event, cause=self.formation.in_run(event.cause))

    # -- hosts that go and come

    def without(self, host: str, incident: Incident, cause: str, now: float) -> List[Order]:
        """Continue the run without a lost host, or fail the run; return the orders."""
        needed = [
            task for task in self._hands.on[host] if task.state in ALIVE and task.plan.name in self.formation.indices
        ]
        self._show_lost(host, cause)
        if self._run.phase in ("closing", "ended"):
            return []
        if not self.elastic:
            self._hands.fail(incident, cause, now)
            return []
        self._out[host] = self._lost.setdefault(host, Out())
        self._out[host].lost(incident)
        self._losses.append(incident)
        orders = self._adapt() if self._run.phase == "training" and needed else []
        if self._run.phase != "training":
            self._first = self._first or (incident, cause)
        return orders

    def joined(self, host: str, now: float) -> bool:
        """Record that a host's agent is connected; return whether the host was out."""
        if host not in self._out:
            return False
        self._out[host].back(now)
        for task in self._hands.on[host]:
            task.cause = f"{host} is back, and waits to be taken into the run again"
        return True

    def _show_lost(self, host: str, cause: str) -> None:
        over = self._run.phase in ("closing", "ended")
        for task in self._hands.on[host]:
            if task.state in ALIVE or (task.state in ("stopped", "lost") and not over):
                self._hands.turn(task, "lost", False)
                task.cause, task.progress = cause, {}
                task.history.clear()  # it has no part any more in what the run does a second

    # -- forming

    def begin(self, now: float) -> List[Order]:
        """Start the run on all of its hosts, or on those that are there."""
        self._run.phase = "training"
        self._out = {host: out for host, out in self._out.items() if out.ready_at == math.inf}
        return self._start_all(form(0, self._plans, self._out), now)

    def advance(self, now: float) -> List[Order]:
        """Return the orders that are due while the run trains or re-forms."""
        if self._run.phase == PHASE and not self._run.processes:
            self._return(now)
            return self._start_all(form(self.formation.number + 1, self._plans, self._out), now)
        if self._run.phase != "training":
            return []
        if self._rested_at == math.inf and self._run.is_up:
            self._rested_at, self._first = now + REST_S, None
        return self._take_back(now) if self._out and now >= self._rested_at else []

    def _adapt(self) -> List[Order]:
        """Return the orders that follow from a change of the hosts that are there."""
        following = form(self.formation.number, self._plans, self._out)
        if following.cluster != self.formation.cluster:
            return self._end_all()
        # An evaluator, which only follows, or a spare that goes on waiting.
        came = [name for name in following.tasks if name not in self.formation.indices]
        self.formation = following
        self._show_waiting()
        return [self._start(name) for name in came]

    def _end_all(self) -> List[Order]:
        self._run.phase, self._saves = PHASE, False
        orders: List[Order] = []
        for name in self.formation.tasks:
            task = self._run.tasks[name]
            if task.process:
                orders.append(Stop(name, END_S, task.attempt))
            elif task.state in ALIVE:
                self._hands.turn(task, "restarting", False)
        return orders

    def _start_all(self, following: Formation, now: float) -> List[Order]:
        missing = too_few(following, self._plans, self._run.plan.min_workers or 0)
        if missing is not None and self._first is not None:
            incident, cause = self._first
            self._hands.fail(incident, f"{cause}; {missing}", now)
            return []
        self._run.phase, self.formation, self._rested_at = "training", following, math.inf
        without = f"goes on without {', '.join(self._out)}: " if self._out else ""
        for incident in self._losses:
            self._run.incidents.did(f"{without}{described(following, self._plans)}", now, incident)
        self._losses = []
        self._show_waiting()
        return [self._start(name) for name in following.tasks]

    def _start(self, name: str) -> Order:
        task = self._run.tasks[name]
        task.attempt += name in self._begun
        return self._hands.start(task)

    def _show_waiting(self) -> None:
        """Mark the tasks that are there and not needed as spares."""
        for name, task in self._run.tasks.items():
            if name not in self.formation.indices and task.plan.host not in self._out:
                self._hands.turn(task, "stopped", False)
                task.cause = SPARE

    # -- taking hosts back

    def _take_back(self, now: float) -> List[Order]:
        ready = self._ready(now)
        if not ready or (self._saves and self._run.saving.pending(now)):
            return []
        asked = self._run.saving.ask(now) if self._is_needed(ready) and not self._saves else []
        self._saves = bool(asked)
        if asked:
            return asked
        self._return(now)
        return self._adapt()

    def _ready(self, now: float) -> List[str]:
        return [host for host, out in self._out.items() if now >= out.ready_at]

    def _is_needed(self, hosts: List[str]) -> bool:
        """Return whether the return of these hosts needs a new formation.

        An evaluator, or a spare, needs none.
        """
        out = [host for host in self._out if host not in hosts]
        return form(0, self._plans, out).cluster != self.formation.cluster

    def _return(self, now: float) -> None:
        """Remove the hosts that may be taken back from the hosts that are out."""
        for host in self._ready(now):
            incident = self._out.pop(host).incident
            self._run.incidents.did(f"{host} is taken back", now, incident)

    # -- what is shown

    def status(self) -> Optional[FormationStatus]:
        """Return the status of the formation; None where a lost host ends the run."""
        if not self.elastic:
            return None
        (workers, servers), (all_workers, all_servers) = sizes(self.formation.indices), wanted(self._plans)
        return FormationStatus(
            number=self.formation.number,
            workers=workers,
            of_workers=all_workers,
            ps=servers,
            of_ps=all_servers,
            without=list(self._out),
            forming=self._run.phase == PHASE,
        )
