"""Hearing of a run from its lead: its status, then every change, over a connection that is made anew when it breaks.

Who only looks on is a ``launch.run.observer.Onlooker``; it renews no lease, so a run does not notice it.
The launcher that started the run is a ``launch.run.attached.Watch``, which keeps it alive and stops it.
"""

import time
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, Dict, Mapping, Optional

from launch.errors import HostProblem, ProblemKind
from launch.fleet import Fleet
from launch.hosts.channel import Silence
from launch.hosts.conversation import Conversation, as_run, reading
from launch.plan.agent_requests import LEASE_S
from launch.status.run import RunStatus
from launch.status.states import ENDED
from launch.status.task import TaskStatus
from launch.status.values import from_values, updated
from launch.view.live_view import View

BEAT_S = 1.0
SILENT_S = 5.0  # beats are answered: after so long without one, the connection is made anew


class Follower(ABC):
    """Follows one run until it has ended, or there is a reason of its own to stop.

    Every beat is answered. Of a lead that is silent, and cannot be reached anew within
    ``LEASE_S``, nothing more is heard: ``give_up``.

    Args:
      request: names the run on its lead: {"run", "host", "workdir"}.
      status: what is known before anything was received.
    """

    beat = "ping"

    def __init__(self, fleet: Fleet, request: Mapping[str, Any], status: RunStatus, view: View):
        self._fleet, self._request, self._view = fleet, request, view
        self._lead: str = request["host"]
        self._status = status  # of whose tasks only ``_tasks`` is kept current
        self._tasks = by_name(status)
        self._beat_at = 0.0
        self._heard_at = 0.0
        self._looked_at = time.monotonic()

    @abstractmethod
    def greet(self, lead: Conversation, first: bool) -> None:
        """Tells the lead what it is to know when a conversation begins, beyond that we watch."""

    @abstractmethod
    def give_up(self, problem: HostProblem) -> None:
        """The lead was out of reach for as long as the lease; ``problem`` says why."""

    @abstractmethod
    def heed(self, lead: Conversation) -> None:
        """Passes on what the user wants; called twice a second."""

    def answered(self, change: Mapping[str, Any]) -> None:
        """The lead has sent a line."""
        return

    def unwanted(self) -> bool:
        """Whether nobody wants to hear more."""
        return False

    def satisfied(self, lead: Conversation) -> bool:
        """Whether enough was heard, though the run goes on; called twice a second."""
        return False

    def revived(self) -> bool:
        """Whether the lead's agent, which has died, was started again. Raises HostProblem."""
        return False

    def follow(self) -> RunStatus:
        """The run's last status."""
        lead: Optional[Conversation] = self._attach(first=True)
        while lead is not None:
            why = ""
            try:
                if self._listen(lead):
                    break
            except HostProblem as problem:  # a stream that broke is a stream that ended: both are said below
                if problem.kind is ProblemKind.NOISE:
                    why = f" ({problem.reason})"
                    time.sleep(BEAT_S)  # a program that always answers so is not asked without a pause
            finally:
                lead.close()
            self._view.note(f"lost the connection to {self._lead}{why}; trying again")
            lead = self.again()
        return self.status()

    def status(self) -> RunStatus:
        """Return the run's status as far as the lead has sent it."""
        return replace(self._status, tasks=list(self._tasks.values()))

    def _attach(self, first: bool = False) -> Conversation:
        lead = self._fleet.contact(self._lead, "attach", self._request)
        lead.tell({"do": "watch"})
        self.greet(lead, first)
        return lead

    def _listen(self, lead: Conversation) -> bool:
        """True when there is nothing more to hear; False when the stream broke off."""
        self._heard_at = time.monotonic()
        while self._silent_s() < SILENT_S:
            self.heed(lead)
            self._beat(lead)
            try:
                change = lead.hear(BEAT_S / 2)
            except Silence:
                change = {}
            else:
                self._heard_at = time.monotonic()
                self.answered(change or {})
            if change is None:
                return False
            if "end" in change:
                return self._knows_the_run()
            if change.get("run") is not None:
                self._take(change)
            if self.unwanted() or self.satisfied(lead):
                return True
        return False

    def _knows_the_run(self) -> bool:
        """Return True. Raises HostProblem where nothing was reported of the run before its end."""
        if not self._tasks:
            raise HostProblem(self._lead, ProblemKind.NOISE, "expected the run's status, found only its end")
        return True

    def _silent_s(self) -> float:
        """Return how long the lead was silent while we listened: a process that is stopped hears nobody."""
        now, continued_at = time.monotonic(), self._fleet.interrupts.continued_at
        if continued_at > self._looked_at:
            self._view.note(f"this launcher was stopped for {continued_at - self._looked_at:.0f} s and goes on")
            self._heard_at = max(self._heard_at, continued_at)
        self._looked_at = now
        return now - self._heard_at

    def _take(self, change: Mapping[str, Any]) -> None:
        with reading(self._lead):
            self._status = updated(self._status, change["run"])
            self._tasks.update({name: from_values(TaskStatus, task) for name, task in change["tasks"].items()})
        self._view.show(self.status())

    def _beat(self, lead: Conversation) -> None:
        if time.monotonic() >= self._beat_at:
            self._beat_at = time.monotonic() + BEAT_S
            lead.tell({"do": self.beat})

    def again(self) -> Optional[Conversation]:
        """A new connection within the lease; None when there is nothing more to follow."""
        host = self._fleet.hosts[self._lead]
        problem = HostProblem(self._lead, ProblemKind.SILENT, f"no answer within {LEASE_S:.0f} s")
        while self._silent_s() < LEASE_S and not self.unwanted():
            try:
                host.close()
                host.connect()
                if self._ended_meanwhile():
                    return None
                return self._attach()
            except HostProblem as error:
                problem = error
            time.sleep(BEAT_S)
        if not self.unwanted():
            self.give_up(problem)
        return None

    def _ended_meanwhile(self) -> bool:
        answers, problems = self._fleet.ask("status", {self._lead: self._request}, LEASE_S, heed=False)
        if problems:
            raise problems[0]
        if answers[self._lead].get("died") and self.revived():
            return False
        values = answers[self._lead]["status"]
        if values is None:
            return False
        status = as_run(self._lead, values)
        if status.state not in ENDED:
            return False
        self._status, self._tasks = status, by_name(status)
        self._view.show(self._status)
        return True


def by_name(status: RunStatus) -> Dict[str, TaskStatus]:
    """Return the tasks of a run by name."""
    return {task.name: task for task in status.tasks}
