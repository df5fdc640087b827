"""Hosts that leave a run in an orderly way, before their machines shut down.

An elastic run that can train without the host drains the host's tasks: it trains on without them,
and loses no step. Any other run saves a checkpoint and stops.
"""

from typing import Collection, Dict, List, Optional, Set

from launch.agent.protocol.messages import DrainRequested, Event, Leaving, Order
from launch.agent.supervision.elastic import Formations
from launch.agent.supervision.run_state import SupervisedRun, SupervisionRule


class Departures(SupervisionRule):
    """The rule about hosts that leave one run in an orderly way.

    ``reasons`` has the reason for each host's departure. ``needed`` is a leaving host that the run cannot do
    without, so the run stops.

    Args:
      resume: the command that continues the stopped run.
    """

    def __init__(self, run: SupervisedRun, formations: Formations, resume: str):
        super().__init__(run)
        self.reasons: Dict[str, str] = {}
        self.needed: Optional[str] = None
        self._formations, self._resume = formations, resume
        self._begun: Set[str] = set()

    def handle(self, event: Event, now: float) -> List[Order]:
        """Drain the tasks of each leaving host once, or stop a run that cannot train without these tasks."""
        if isinstance(event, Leaving):
            self.reasons.setdefault(event.host, event.why)
        if self._run.state.is_closing:
            return []
        for host in [host for host in self.reasons if host not in self._begun]:
            request = self._drain(host)
            if not self._can_spare(request):
                self.needed = host
                reason = f"{host} leaves: {self.reasons[host]}; continue with `{self._resume}`"
                return self._run.stop(reason, now)
            if self._formations.can_change:
                self._begun.add(host)
                # The machine may shut down before the drain is complete, so the chief also saves at once.
                return self._run.saving.ask(now) + self._formations.drain(request, now)
        return []

    def discard(self, tasks: Collection[str]) -> None:
        """Forget that the hosts of these tasks leave, because an operator wants the tasks back."""
        for host in {self._run.tasks[name].plan.host for name in tasks}:
            self.reasons.pop(host, None)
            self._begun.discard(host)

    def as_cause(self, host: str) -> Optional[str]:
        """Return the cause of a host's silence if the host has announced its departure; else None."""
        return f"it has left: {self.reasons[host]}" if host in self.reasons else None

    def _drain(self, host: str) -> DrainRequested:
        """Return the request to drain a host; its evaluator, which nobody waits for, runs until the host shuts down."""
        tasks = [task.plan for task in self._run.roster.by_host[host]]
        return DrainRequested([task.name for task in tasks if task.role != "evaluator"])

    def _can_spare(self, request: DrainRequested) -> bool:
        """Return whether the run can train without these tasks."""
        chief = any(self._run.tasks[name].plan.chief for name in request.tasks)
        if not self._formations.is_elastic or chief:
            return False
        return self._formations.wishes.shortage_after(request, self._formations.out) is None
