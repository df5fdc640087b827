"""An attached run: hears what the lead tells, keeps its lease, heeds Ctrl-C."""

import signal
import time
from typing import Any, Dict, Optional

from launch.channel import Channel, Silence
from launch.display import View
from launch.errors import HostProblem
from launch.fleet import Fleet
from launch.interrupts import Interrupts
from launch.plan import LEASE_S, Plan

BEAT_S = 1.0
SILENT_S = 5.0  # beats are answered: after so long without one, the connection is made anew
ENDED = ("succeeded", "failed", "stopped")


class Watch:
    """Follows one run from its lead until it has ended, or is up if ``detach``.

    Every beat is answered. A lead that is silent for as long as the lease, and cannot be
    reached anew within it, has ended the run: its tasks, the chief's among them, are lost.
    """

    def __init__(self, fleet: Fleet, plan: Plan, view: View, interrupts: Interrupts, detach: bool = False):
        self._fleet, self._plan, self._view, self._interrupts, self._detach = fleet, plan, view, interrupts, detach
        self._status: Dict[str, Any] = {"run": plan.run, "name": plan.spec.name, "state": "starting"}
        self._tasks: Dict[str, Dict[str, Any]] = {}
        self._heeded = 0
        self._beat_at = 0.0
        self._heard_at = 0.0

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
            self._view.note(f"lost the connection to {self._plan.lead}; trying again")
            channel = self._again()
        return self.status()

    def status(self) -> Dict[str, Any]:
        """``status --json`` as heard so far."""
        return {**self._status, "tasks": list(self._tasks.values())}

    def _attach(self, first: bool = False) -> Channel:
        request = {"run": self._plan.run, "host": self._plan.lead, "workdir": self._plan.spec.workdir}
        channel = self._fleet.contact(self._plan.lead, "attach", request)
        channel.tell({"do": "watch"})
        if first:
            channel.tell({"do": "go"})
        return channel

    def _listen(self, channel: Channel) -> bool:
        """True when there is nothing more to hear; False when the stream broke off."""
        self._heard_at = time.monotonic()
        while time.monotonic() - self._heard_at < SILENT_S:
            self._heed(channel)
            self._beat(channel)
            try:
                change = channel.hear(BEAT_S / 2)
            except Silence:
                continue
            self._heard_at = time.monotonic()
            if change is None or "error" in change:
                return False
            if "end" in change:
                return True
            if "run" in change:
                self._take(change)
            if self._detach and self._status["state"] == "running" and not self._interrupts.received:
                return self._let_go(channel)
        return False

    def _take(self, change: Dict[str, Any]) -> None:
        self._status = change["run"]
        self._tasks.update(change["tasks"])
        self._view.show(self.status())

    def _beat(self, channel: Channel) -> None:
        if time.monotonic() >= self._beat_at:
            self._beat_at = time.monotonic() + BEAT_S
            channel.tell({"do": "beat"})

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

    def _heed(self, channel: Channel) -> None:
        """The first signal stops the run in order, the second kills it."""
        while self._heeded < min(2, len(self._interrupts.received)):
            name = signal.Signals(self._interrupts.received[self._heeded]).name
            self._heeded += 1
            if self._heeded == 1:
                self._view.note(f"{name}: stopping the workers, then the ps; once more kills them at once")
                channel.tell({"do": "stop", "reason": f"{name} to launch up"})
            else:
                self._view.note(f"{name}: killing every task")
                channel.tell({"do": "kill", "reason": f"second {name} to launch up"})

    def _again(self) -> Optional[Channel]:
        """A new connection within the lease; None when there is nothing more to follow."""
        host = self._fleet.hosts[self._plan.lead]
        problem = ""
        self._heeded = 0  # what signals had us tell may have been lost: it is told again
        while time.monotonic() - self._heard_at < LEASE_S:
            try:
                host.close()
                host.connect()
                if self._ended_meanwhile():
                    return None
                return self._attach()
            except (HostProblem, OSError) as error:
                problem = str(error)
                time.sleep(BEAT_S)
        self._give_up(problem)
        return None

    def _give_up(self, problem: str) -> None:
        """The chief's host is out of reach, so the run has failed; its other hosts are taken down by themselves."""
        cause = f"{problem} (the chief's host was lost)"
        for task in self._tasks.values():
            if task["host"] == self._plan.lead:
                task.update(state="lost", cause=cause)
        self._status.update(state="failed", cause=cause)

    def _ended_meanwhile(self) -> bool:
        request = {"run": self._plan.run, "host": self._plan.lead, "workdir": self._plan.spec.workdir}
        answers, problems = self._fleet.ask("status", {self._plan.lead: request}, LEASE_S, heed=False)
        if problems:
            raise problems[0]
        status = answers[self._plan.lead]["status"]
        if status is None or status["state"] not in ENDED:
            return False
        tasks = status.pop("tasks")
        self._take({"run": status, "tasks": {f"{task['role']}:{task['index']}": task for task in tasks}})
        return True
