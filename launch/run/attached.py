"""Follow an attached run: receive its status, renew its lease, and react to Ctrl-C and Ctrl-Z.

Ctrl-Z pauses the launcher and not the run: the launcher asks the lead to wait for the next beat without a time limit.
"""

import signal
import time
from dataclasses import replace
from typing import Any, Mapping, Optional

from launch.errors import HostProblem
from launch.fleet import Fleet
from launch.hosts.channel import Silence
from launch.hosts.conversation import Conversation
from launch.plan.agent_requests import LEASE_S
from launch.plan.plan import Plan
from launch.run.agent_restarts import AgentRestarts
from launch.run.follower import BEAT_S, Follower
from launch.status.run import RunStatus
from launch.view.plain_view import View

PAUSE_S = 3.0  # for the lead to confirm a pause
PAUSED = "paused: the run continues; `fg` continues this view, and `launch down` ends the run"
UNPAUSED = "{} has not confirmed the pause: the run ends unless this launcher continues within {:.0f} s"


class Attached(Follower):
    """Follow the run that this launcher has started, until the run has ended, or is up if ``detach``."""

    beat = "beat"

    def __init__(self, fleet: Fleet, plan: Plan, view: View, restarts: AgentRestarts, detach: bool = False):
        super().__init__(fleet, RunStatus(plan.run, plan.spec.name, "starting"), view)
        self._interrupts, self._restarts, self._detach = fleet.interrupts, restarts, detach
        self._relayed = 0
        self._paused = False  # the lead may wait for our next beat for ever
        self.lead_lost_at: Optional[float] = None  # when the lead last sent a line, once it is lost

    def attach(self) -> Conversation:
        """Open a conversation, and let the run begin: its lead starts the tasks once all agents have joined.

        Each conversation sends ``go``: an earlier one may have been lost with its connection. A lead whose run has
        begun ignores ``go``.
        """
        lead = super().attach()
        lead.send({"do": "go"})
        return lead

    def follow(self) -> RunStatus:
        """Let the run begin, follow it, and return its last status.

        When ``follow`` returns, no agent is being started any more.
        """
        try:
            with self._interrupts.pausable():
                return super().follow()
        finally:
            self._restarts.close()

    def is_unwanted(self) -> bool:
        """Return False: after a signal the launcher follows the run to its end."""
        return False

    def is_over(self, lead: Conversation) -> bool:
        """Return whether a detached run is up, and the lead has confirmed the detachment."""
        up = self._detach and self._status.state == "running" and not self._interrupts.received
        if not up:
            return False
        lead.send({"do": "detach"})
        return self._confirmed(lead, "detached", LEASE_S)

    def _confirmed(self, lead: Conversation, word: str, timeout_s: float) -> bool:
        """Return whether the lead answers with ``word`` within ``timeout_s`` seconds.

        The method applies the changes of the run that the lead sends in the meantime.
        """
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            try:
                answer = lead.receive(BEAT_S)
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
        """Stop this process until it is continued; the next beat then renews the lease."""
        self._paused = True
        lead.send({"do": "pause"})
        confirmed = self._confirmed(lead, "paused", PAUSE_S)
        with self._view.hidden():
            self._view.note(PAUSED if confirmed else UNPAUSED.format(self._lead, LEASE_S))
            self._interrupts.pause()
        self._beat_at = 0.0

    def relay(self, lead: Conversation) -> None:
        """Pass signals on: the first stops the run in order, the second kills the run.

        Until the first signal, ``relay`` restarts agents that died. After a Ctrl-Z, ``relay`` pauses this process.
        """
        if self._interrupts.pause_asked:
            self._pause(lead)
        if not self._interrupts.received:
            silent = [host for host in self._status.silent if host in self._fleet.hosts]
            for line in self._restarts.look(silent):
                self._view.note(line)
        for number in self._interrupts.received[self._relayed : 2]:
            name = signal.Signals(number).name
            self._relayed += 1
            if self._relayed == 1:
                self._view.note(f"{name}: stopping the workers, then the ps; a second signal kills them at once")
                lead.send({"do": "stop", "reason": f"{name} to launch up"})
            else:
                self._view.note(f"{name}: killing every task")
                lead.send({"do": "kill", "reason": f"second {name} to launch up"})

    def note_answer(self, change: Mapping[str, Any]) -> None:
        """Record that an answered beat has ended a pause."""
        self._paused = self._paused and "beat" not in change

    def reattach(self) -> Optional[Conversation]:
        """Return a new connection, over which the requests of earlier signals are sent again.

        Those requests may have been lost with the old connection.
        """
        self._relayed = 0
        return super().reattach()

    def restart_lead(self) -> bool:
        """Restart the dead agent of the lead, and return whether that was done.

        The method does not restart the agent after a signal, nor where the agent keeps dying.
        """
        if self._interrupts.received or not self._restarts.start_lead():
            return False
        self._view.note(f"{self._lead}: the lead agent died; restarted it")
        return True

    def give_up(self, problem: HostProblem) -> None:
        """Mark the run as failed, because the chief's host is out of reach.

        Each other host of the run is taken down by itself.
        """
        self.lead_lost_at = None if self._paused else self._received_at
        cause = f"{self._lead}: {problem.reason} (the chief's host was lost)"
        for name, task in self._tasks.items():
            if task.host == self._lead:
                self._tasks[name] = replace(task, state="lost", cause=cause)
        self._status = replace(self._status, state="failed", cause=cause)
