"""Hosts that leave a run in order, before their machines go.

An elastic run that can train without such a host drains its tasks, so that no step is lost. Any other run saves, and
stops.
"""

from typing import Collection, Dict, Optional, Set, Union

from launch.agent.protocol.messages import DrainRequested, Leaving, StopRequested
from launch.agent.supervision.elastic import Formations
from launch.agent.supervision.formation import form, shortage
from launch.agent.supervision.run_state import Phase
from launch.agent.supervision.task_records import Roster
from launch.agent.wire.run_request import RunPlan


class Departures:
    """The hosts that leave one run.

    ``reasons`` has why, by host. ``needed`` is the host without which the run cannot go on, and stops.

    Args:
      resume: the command with which a run goes on that has stopped.
    """

    def __init__(self, plan: RunPlan, roster: Roster, formations: Formations, resume: str):
        self.reasons: Dict[str, str] = {}
        self.needed: Optional[str] = None
        self._plan, self._roster, self._formations, self._resume = plan, roster, formations, resume
        self._begun: Set[str] = set()

    def add(self, event: Leaving) -> None:
        """Record that a host leaves; the first reason stands."""
        self.reasons.setdefault(event.host, event.why)

    def discard(self, tasks: Collection[str]) -> None:
        """Forget the departure of the hosts of these tasks: they are wanted back."""
        for host in {self._roster.by_name[name].plan.host for name in tasks}:
            self.reasons.pop(host, None)
            self._begun.discard(host)

    def as_cause(self, host: str) -> Optional[str]:
        """Return the cause of a silence, where the host was to leave."""
        return f"it has left: {self.reasons[host]}" if host in self.reasons else None

    def next(self, phase: Phase) -> Union[DrainRequested, StopRequested, None]:
        """Return what is due for a host that leaves, once for each; None where nothing is, or not yet."""
        for host in [host for host in self.reasons if host not in self._begun]:
            request = self._drain(host)
            if not self._can_spare(request):
                self.needed = host
                return StopRequested(f"{host} leaves: {self.reasons[host]}; continue with `{self._resume}`")
            if self._formations.can_change(phase):
                self._begun.add(host)
                return request
        return None

    def _drain(self, host: str) -> DrainRequested:
        """Return the request to drain a host; an evaluator, without which others train, stays until the host goes."""
        tasks = [task.plan for task in self._roster.by_host[host]]
        return DrainRequested([task.name for task in tasks if task.role != "evaluator"])

    def _can_spare(self, request: DrainRequested) -> bool:
        """Return whether the run can train without these tasks."""
        chief = any(self._roster.by_name[name].plan.chief for name in request.tasks)
        if not self._formations.is_elastic or chief:
            return False
        wishes = self._formations.wishes.joined_by(request)
        left = form(0, self._plan.tasks, self._formations.out, wishes)
        return shortage(left, self._plan.tasks, self._plan.min_workers or 0) is None
