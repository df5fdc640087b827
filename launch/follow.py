"""Hearing of a run from its lead: its status, then every change, over a connection that is made anew when it breaks.

Who only looks on is a ``launch.onlooker.Onlooker``; it renews no lease, so a run does not notice it.
The launcher that started the run is a ``launch.watch.Watch``, which keeps it alive and stops it.
"""

import time
from abc import ABC, abstractmethod
from typing import Any, Dict, Mapping, Optional

from launch.agent.states import ENDED
from launch.channel import Channel, Silence
from launch.display import View
from launch.errors import HostProblem
from launch.fleet import Fleet
from launch.plan import LEASE_S
from launch.task_table import name_of

BEAT_S = 1.0
SILENT_S = 5.0  # beats are answered: after so long without one, the connection is made anew


class Follower(ABC):
    """Follows one run until it has ended, or there is a reason of its own to stop.

    Every beat is answered. Of a lead that is silent, and cannot be reached anew within
    ``LEASE_S``, nothing more is heard: ``give_up``.

    Args:
      request: names the run on its lead: {"run", "host", "workdir"}.
      status: what is known before anything was heard.
    """

    beat = "ping"

    def __init__(self, fleet: Fleet, request: Mapping[str, Any], status: Mapping[str, Any], view: View):
        self._fleet, self._request, self._view = fleet, request, view
        self._lead: str = request["host"]
        self._status = {key: value for key, value in status.items() if key != "tasks"}
        self._tasks = by_name(status.get("tasks", []))
        self._beat_at = 0.0
        self._heard_at = 0.0

    @abstractmethod
    def greet(self, channel: Channel, first: bool) -> None:
        """Tells the lead what it is to know when a conversation begins, beyond that we watch."""

    @abstractmethod
    def give_up(self, problem: str) -> None:
        """The lead was out of reach for as long as the lease; ``problem`` says why."""

    @abstractmethod
    def heed(self, channel: Channel) -> None:
        """Passes on what the user wants; called twice a second."""

    def unwanted(self) -> bool:
        """Whether nobody wants to hear more."""
        return False

    def satisfied(self, channel: Channel) -> bool:
        """Whether enough was heard, though the run goes on; called twice a second."""
        return False

    def revived(self) -> bool:
        """Whether the lead's agent, which has died, was started again. Raises HostProblem."""
        return False

    def follow(self) -> Dict[str, Any]:
        """The run's last status."""
        channel: Optional[Channel] = self._attach(first=True)
        while channel is not None:
            try:
                if self._listen(channel):
                    break
            except OSError:
                pass  # said below: a stream that broke is a stream that ended
            finally:
                channel.close()
            self._view.note(f"lost the connection to {self._lead}; trying again")
            channel = self.again()
        return self.status()

    def status(self) -> Dict[str, Any]:
        """``status --json`` as heard so far."""
        return {**self._status, "tasks": list(self._tasks.values())}

    def _attach(self, first: bool = False) -> Channel:
        channel = self._fleet.contact(self._lead, "attach", self._request)
        channel.tell({"do": "watch"})
        self.greet(channel, first)
        return channel

    def _listen(self, channel: Channel) -> bool:
        """True when there is nothing more to hear; False when the stream broke off."""
        self._heard_at = time.monotonic()
        while time.monotonic() - self._heard_at < SILENT_S:
            self.heed(channel)
            self._beat(channel)
            try:
                change = channel.hear(BEAT_S / 2)
            except Silence:
                change = {}
            else:
                self._heard_at = time.monotonic()
            if change is None or "error" in change:
                return False
            if "end" in change:
                return True
            if "run" in change:
                self._take(change)
            if self.unwanted() or self.satisfied(channel):
                return True
        return False

    def _take(self, change: Mapping[str, Any]) -> None:
        self._status = {**self._status, **change["run"]}
        self._tasks.update(change["tasks"])
        self._view.show(self.status())

    def _beat(self, channel: Channel) -> None:
        if time.monotonic() >= self._beat_at:
            self._beat_at = time.monotonic() + BEAT_S
            channel.tell({"do": self.beat})

    def again(self) -> Optional[Channel]:
        """A new connection within the lease; None when there is nothing more to follow."""
        host = self._fleet.hosts[self._lead]
        problem = ""
        while time.monotonic() - self._heard_at < LEASE_S and not self.unwanted():
            try:
                host.close()
                host.connect()
                if self._ended_meanwhile():
                    return None
                return self._attach()
            except (HostProblem, OSError) as error:
                problem = error.reason if isinstance(error, HostProblem) else str(error)
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
        status = answers[self._lead]["status"]
        if status is None or status["state"] not in ENDED:
            return False
        tasks = status.pop("tasks")
        self._take({"run": status, "tasks": by_name(tasks)})
        return True


def by_name(tasks: Any) -> Dict[str, Dict[str, Any]]:
    """{``worker:1``: its entry in ``status --json``}"""
    return {name_of(task): task for task in tasks}
