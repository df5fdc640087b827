"""The state of a run: its phase and result, the knowledge that all rules share, and the interface of a rule.

A rule is one object, with the state that only this rule needs. ``supervisor`` has the list of all rules. Each event
passes the rules in the order of the list, and each rule returns its orders. So a new rule, such as ``together``, is a
module with one class, and a line in that list.

Phases of a run, and the phases that may follow each phase:

    gathering   agents join; ends when all have joined and the launcher has sent go     training, closing
    training    tasks run; failed tasks restart with backoff, within ``restart.max``    re-forming, closing
    re-forming  an elastic run has lost hosts, or takes hosts back: the processes of    training, closing
                the old formation end, then the processes of the next one start
    closing     the result is known (succeeded, failed or stopped): workers exit or     ended
                are stopped, then the ps; after a success the tasks first have time to
                exit by themselves; before a planned stop the chief saves
    ended       every task has ended

Only ``RunState`` changes the phase, and one place in the code enters each phase:

    training     ``Formations``, when a formation starts
    re-forming   ``Formations``, when a formation ends
    closing      ``SupervisedRun.close``, which any rule may call: the first result stands
    ended        ``Ending``, when every task has ended
"""

from enum import Enum
from typing import Any, Dict, FrozenSet, List, Mapping, Optional

from cluster.protocol.save_request import HOLD
from launch.agent.errors import AgentError
from launch.agent.protocol.messages import Event, Order
from launch.agent.supervision.incident import Incident
from launch.agent.supervision.incidents import Incidents
from launch.agent.supervision.saving import Saving
from launch.agent.supervision.task_records import Roster
from launch.agent.wire.run_request import RunPlan
from launch.status.run import Remaining
from launch.status.run_history import Curve


class Phase(Enum):
    """A phase of a run; the value is the phase's name in messages."""

    GATHERING = "gathering"
    TRAINING = "training"
    REFORMING = "re-forming"
    CLOSING = "closing"
    ENDED = "ended"


TURNS: Mapping[Phase, FrozenSet[Phase]] = {
    Phase.GATHERING: frozenset({Phase.TRAINING, Phase.CLOSING}),
    Phase.TRAINING: frozenset({Phase.REFORMING, Phase.CLOSING}),
    Phase.REFORMING: frozenset({Phase.TRAINING, Phase.CLOSING}),
    Phase.CLOSING: frozenset({Phase.ENDED}),
    Phase.ENDED: frozenset(),
}


class IllegalTurn(AgentError):
    """An attempt to enter a phase that cannot follow the current phase: a bug in the supervisor."""


class RunState:
    """The phase of one run, and its result once known.

    Attributes:
      result: succeeded, failed or stopped; None until the run closes.
      cause: the reason for the result, as one line; None for a run that succeeds.
      was_up: whether every task of a formation has been up.
    """

    def __init__(self) -> None:
        self._phase = Phase.GATHERING
        self.result: Optional[str] = None
        self.cause: Optional[str] = None
        self.was_up = False

    @property
    def phase(self) -> Phase:
        """Return the current phase of the run."""
        return self._phase

    @property
    def is_closing(self) -> bool:
        """Return whether the result is known, so that no task starts any more."""
        return self._phase in (Phase.CLOSING, Phase.ENDED)

    @property
    def label(self) -> str:
        """Return the run's state as ``status --json`` shows it."""
        if self._phase is Phase.ENDED and self.result is not None:
            return self.result
        return "running" if self.was_up else "starting"

    def turn(self, phase: Phase) -> None:
        """Enter any phase except closing, which ``close`` enters.

        Raises:
          IllegalTurn: the phase cannot follow the current one, or is closing.
        """
        if phase is Phase.CLOSING:
            raise IllegalTurn("closing: expected a result, found none; call close")
        self._enter(phase)

    def close(self, result: str, cause: Optional[str]) -> None:
        """Enter the phase closing, with the result of the run.

        Raises:
          IllegalTurn: the run already has a result.
        """
        self._enter(Phase.CLOSING)
        self.result, self.cause = result, cause

    def _enter(self, phase: Phase) -> None:
        allowed = TURNS[self._phase]
        if phase not in allowed:
            expected = " or ".join(sorted(each.value for each in allowed)) or "no other phase"
            raise IllegalTurn(f"{self._phase.value}: expected {expected} to follow, found {phase.value}")
        self._phase = phase


class SupervisedRun:
    """The state of one run that all rules share. Times are seconds on any monotonic clock.

    Attributes:
      outcome: the chief's report of its result; empty until the chief has ended.
      checkpoint_step: the step of the newest checkpoint that any of the chief's processes has reported; None before the
        first.
      silent: the hosts from which the lead receives nothing now; the lead maintains this list.
      closed_at: the time at which the result became known.
      remaining: the workers that still run after another worker has succeeded; the rule ``quietness`` sets it.
      warnings: mistakes of a program that end no run.
      curve: the learning curve; the rule ``learning_curve`` records it.
    """

    def __init__(self, plan: RunPlan):
        self.plan = plan
        self.state = RunState()
        self.roster = Roster(plan)
        self.tasks = self.roster.by_name
        self.incidents = Incidents(self.tasks, has_progress=plan.judge == "outcome")
        self.saving = Saving(self.roster.chief)
        self.outcome: Dict[str, Any] = {}
        self.checkpoint_step: Optional[int] = None
        self.silent: List[str] = []
        self.closed_at = 0.0
        self.remaining: Optional[Remaining] = None
        self.warnings: List[str] = []
        self.curve = Curve()

    @property
    def trains(self) -> bool:
        """Return whether the run is in the phase training."""
        return self.state.phase is Phase.TRAINING

    @property
    def misses_a_host(self) -> bool:
        """Return whether a silent host has a task with a process, because other tasks may wait for that task.

        A lost host does not count, because its tasks have no process any more.
        """
        return any(task.process for host in self.silent for task in self.roster.by_host[host])

    def close(self, result: str, cause: Optional[str], now: float) -> None:
        """Close the run with its result.

        The first result stands: a later result is its consequence.
        """
        if self.state.is_closing:
            return
        self.state.close(result, cause)
        self.closed_at = now
        for task in self.roster.pending_tasks():
            self.roster.turn(task, "stopped", process=False)

    def fail(self, incident: Incident, now: float, missing: Optional[str] = None) -> None:
        """Close the run as failed because of an incident; ``missing`` describes what the run lacks to continue."""
        cause = incident.line if missing is None else f"{incident.line}; {missing}"
        self.close("failed", self.incidents.blame_incident(incident, cause), now)

    def stop(self, reason: str, now: float) -> List[Order]:
        """Close the run as stopped; return the order to save before its tasks end."""
        orders = self.saving.ask(now, HOLD) if self.trains else []
        self.close("stopped", reason, now)
        return orders


class SupervisionRule:
    """One rule of supervision, which turns events and time into orders for a run."""

    def __init__(self, run: SupervisedRun):
        self._run = run

    def handle(self, event: Event, now: float) -> List[Order]:
        """Process one event, and return the orders that this rule gives."""
        raise NotImplementedError
