"""An attached run: hears what the lead tells, keeps its lease, heeds Ctrl-C."""

import signal
import time
from typing import Any, Dict, Optional

from launch.channel import Channel, Silence
from launch.display import View
from launch.fleet import Fleet
from launch.follow import BEAT_S, Follower
from launch.interrupts import Interrupts
from launch.plan import LEASE_S, Plan
from launch.revive import Revival


class Watch(Follower):
    """Follows the run that this launcher has started, until it has ended, or is up if ``detach``."""

    beat = "beat"

    def __init__(
        self,
        fleet: Fleet,
        plan: Plan,
        view: View,
        interrupts: Interrupts,
        revival: Revival,
        detach: bool = False,
    ):
        request = {"run": plan.run, "host": plan.lead, "workdir": plan.spec.workdir}
        super().__init__(fleet, request, {"run": plan.run, "name": plan.spec.name, "state": "starting"}, view)
        self._interrupts, self._revival, self._detach = interrupts, revival, detach
        self._heeded = 0
        self.lead_lost_at: Optional[float] = None  # when the lead was heard last, once it is given up

    def follow(self) -> Dict[str, Any]:
        """The run's last status; no agent is being started any more."""
        try:
            return super().follow()
        finally:
            self._revival.close()

    def greet(self, channel: Channel, first: bool) -> None:
        """The lead begins the run when it is first told to go."""
        if first:
            channel.tell({"do": "go"})

    def satisfied(self, channel: Channel) -> bool:
        """A detached run is left when it is up."""
        up = self._detach and self._status["state"] == "running" and not self._interrupts.received
        return up and self._let_go(channel)

    def _let_go(self, channel: Channel) -> bool:
        """Whether the lead has confirmed that the run goes on without us."""
        channel.tell({"do": "detach"})
        until = time.monotonic() + LEASE_S
        while time.monotonic() < until:
            try:
                answer = channel.hear(BEAT_S)
            except Silence:
                continue
            if answer is None or "error" in answer:
                return False
            if "detached" in answer:
                return True
        return False

    def heed(self, channel: Channel) -> None:
        """The first signal stops the run in order, the second kills it. Until then, agents that died are replaced."""
        if not self._interrupts.received:
            for line in self._revival.look(self._status.get("silent", [])):
                self._view.note(line)
        while self._heeded < min(2, len(self._interrupts.received)):
            name = signal.Signals(self._interrupts.received[self._heeded]).name
            self._heeded += 1
            if self._heeded == 1:
                self._view.note(f"{name}: stopping the workers, then the ps; once more kills them at once")
                channel.tell({"do": "stop", "reason": f"{name} to launch up"})
            else:
                self._view.note(f"{name}: killing every task")
                channel.tell({"do": "kill", "reason": f"second {name} to launch up"})

    def again(self) -> Optional[Channel]:
        """What signals had us tell may have been lost: it is told again."""
        self._heeded = 0
        return super().again()

    def revived(self) -> bool:
        """The lead's agent is started again; after a signal, and where it keeps dying, it is not."""
        if self._interrupts.received or not self._revival.start_lead():
            return False
        self._view.note(f"{self._lead}: the agent that leads the run had died; started it again")
        return True

    def give_up(self, problem: str) -> None:
        """The chief's host is out of reach, so the run has failed; its other hosts are taken down by themselves."""
        self.lead_lost_at = self._heard_at
        cause = f"{self._lead}: {problem} (the chief's host was lost)"
        for task in self._tasks.values():
            if task["host"] == self._lead:
                task.update(state="lost", cause=cause)
        self._status.update(state="failed", cause=cause)
