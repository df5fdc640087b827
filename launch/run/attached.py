"""An attached run: hears what the lead tells, keeps its lease, heeds Ctrl-C and Ctrl-Z.

Ctrl-Z pauses the launcher and not the run: the lead is asked to wait for the next beat, however long that takes.
"""

import signal
import time
from dataclasses import replace
from typing import Any, List, Mapping, Optional

from launch.errors import HostProblem
from launch.fleet import Fleet
from launch.hosts.channel import Silence
from launch.hosts.conversation import Conversation
from launch.plan.agent_requests import LEASE_S
from launch.plan.plan import Plan
from launch.run.agent_restarts import Revival
from launch.run.follower import BEAT_S, Follower
from launch.signals import Interrupts
from launch.status.run import RunStatus
from launch.view.live_view import View

PAUSE_S = 3.0  # for the lead to confirm a pause
PAUSED = "paused: the run goes on, and this view of it after `fg`; end the run with `launch down`"
UNPAUSED = "{} has not confirmed the pause: the run ends unless this launcher goes on within {:.0f} s"


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
        super().__init__(fleet, request, RunStatus(plan.run, plan.spec.name, "starting"), view)
        self._interrupts, self._revival, self._detach = interrupts, revival, detach
        self._heeded = 0
        self._paused = False  # the lead may wait for our next beat for ever
        self.lead_lost_at: Optional[float] = None  # when the lead was heard last, once its lease will have ended

    def follow(self) -> RunStatus:
        """The run's last status; no agent is being started any more."""
        try:
            with self._interrupts.pausable():
                return super().follow()
        finally:
            self._revival.close()

    def greet(self, lead: Conversation, first: bool) -> None:
        """The lead begins the run when it is first told to go."""
        if first:
            lead.tell({"do": "go"})

    def satisfied(self, lead: Conversation) -> bool:
        """A detached run is left when it is up."""
        up = self._detach and self._status.state == "running" and not self._interrupts.received
        return up and self._let_go(lead)

    def _let_go(self, lead: Conversation) -> bool:
        """Whether the lead has confirmed that the run goes on without us."""
        lead.tell({"do": "detach"})
        return self._confirmed(lead, "detached", LEASE_S)

    def _confirmed(self, lead: Conversation, word: str, timeout_s: float) -> bool:
        """Whether the lead answers with ``word`` in time. What it tells of the run meanwhile is taken in."""
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            try:
                answer = lead.hear(BEAT_S)
            except Silence:
                continue
            if answer is None:
                return False
            if word in answer:
                return True
            if answer.get("run") is not None:
                self._take(answer)
        return False

    def _pause(self, lead: Conversation) -> None:
        """Stops this process until it is continued; the next beat then renews the lease."""
        self._paused = True
        lead.tell({"do": "pause"})
        confirmed = self._confirmed(lead, "paused", PAUSE_S)
        with self._view.hidden():
            self._view.note(PAUSED if confirmed else UNPAUSED.format(self._lead, LEASE_S))
            self._interrupts.pause()
        self._beat_at = 0.0

    def heed(self, lead: Conversation) -> None:
        """The first signal stops the run in order, the second kills it. Until then, agents that died are replaced."""
        if self._interrupts.pause_asked:
            self._pause(lead)
        if not self._interrupts.received:
            for line in self._revival.look(self._silent_ones()):
                self._view.note(line)
        while self._heeded < min(2, len(self._interrupts.received)):
            name = signal.Signals(self._interrupts.received[self._heeded]).name
            self._heeded += 1
            if self._heeded == 1:
                self._view.note(f"{name}: stopping the workers, then the ps; once more kills them at once")
                lead.tell({"do": "stop", "reason": f"{name} to launch up"})
            else:
                self._view.note(f"{name}: killing every task")
                lead.tell({"do": "kill", "reason": f"second {name} to launch up"})

    def _silent_ones(self) -> List[str]:
        return [host for host in self._status.silent if host in self._fleet.hosts]

    def answered(self, change: Mapping[str, Any]) -> None:
        """A beat that was answered has ended a pause."""
        self._paused = self._paused and "beat" not in change

    def again(self) -> Optional[Conversation]:
        """What signals had us tell may have been lost: it is told again."""
        self._heeded = 0
        return super().again()

    def revived(self) -> bool:
        """The lead's agent is started again; after a signal, and where it keeps dying, it is not."""
        if self._interrupts.received or not self._revival.start_lead():
            return False
        self._view.note(f"{self._lead}: the agent that leads the run had died; started it again")
        return True

    def give_up(self, problem: HostProblem) -> None:
        """The chief's host is out of reach, so the run has failed; its other hosts are taken down by themselves."""
        self.lead_lost_at = None if self._paused else self._heard_at
        cause = f"{self._lead}: {problem.reason} (the chief's host was lost)"
        for name, task in self._tasks.items():
            if task.host == self._lead:
                self._tasks[name] = replace(task, state="lost", cause=cause)
        self._status = replace(self._status, state="failed", cause=cause)
