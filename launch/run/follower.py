"""Receive a run's status and every change from its lead; renew the connection when it breaks.

A follower reads the status of a run that another process has started, and renews no lease. So it does not affect the
run. The launcher that started a run uses ``Attached``, which also lets the run begin, keeps the run alive, and stops
the run.
"""

import contextlib
import time
from dataclasses import replace
from typing import Any, Dict, Mapping, Optional

from cluster.protocol.typed_json import from_values, updated
from launch.errors import CannotStart, HostProblem, ProblemKind
from launch.fleet import Fleet
from launch.hosts.channel import Silence
from launch.hosts.conversation import Conversation, as_run, noise_if_malformed
from launch.plan.agent_requests import LEASE_S
from launch.status.run import ENDED, RunStatus
from launch.status.task import TaskStatus
from launch.view.plain_view import View

BEAT_S = 1.0
STOPPED_S = 1.0  # a shorter stop is none: `timeout -s INT` sends SIGCONT, too
SILENT_S = 5.0  # the lead answers beats: after this time without an answer, connect again
MAY_CONTINUE = "the run may continue there"  # on a host that is out of reach


class Follower:
    """The follower of one run, until the run has ended or a signal comes.

    The lead answers every beat. The follower gives up when the lead has been silent for ``LEASE_S`` seconds, however
    many connections were opened meanwhile: a stopped agent accepts each connection, and never answers.

    Args:
      fleet: the hosts of the run; the fleet's lead is the lead of the run.
      status: the status that is known before the lead sends its first status.
    """

    def __init__(self, fleet: Fleet, status: RunStatus, view: View):
        self._fleet, self._view = fleet, view
        self._lead = fleet.lead
        self._reference = fleet.reference(fleet.lead, status.run)
        self._status = status  # the current tasks are in ``_tasks``
        self._tasks = by_name(status)
        self._beat_at = 0.0
        self._received_at = 0.0  # when the lead last answered
        self._attached_at = 0.0  # when the newest conversation began
        self._looked_at = time.monotonic()

    # -- methods that an attached launcher overrides

    def attach(self) -> Conversation:
        """Open a conversation in which the lead reports every change of the run. Raises HostProblem."""
        lead = self._fleet.contact(self._lead, "attach", self._reference)
        lead.send({"do": "watch"})
        return lead

    def begin(self) -> Optional[Conversation]:
        """Open the first conversation. Raises HostProblem where the lead is out of reach now."""
        return self.attach()

    def relay(self, lead: Conversation) -> None:
        """Pass signals on to the lead; called twice a second. This class passes none: they end only its own process."""

    def beat(self) -> Dict[str, Any]:
        """Return the request that the lead answers at once."""
        return {"do": "ping"}

    def note_answer(self, change: Mapping[str, Any]) -> None:
        """React to a line that the lead has sent."""

    def is_over(self, lead: Conversation) -> bool:
        """Return whether the follower has received enough, though the run continues; called twice a second."""
        return self.is_unwanted()

    def is_unwanted(self) -> bool:
        """Return whether a signal has come, after which the follower receives no more."""
        return bool(self._fleet.interrupts.received)

    def restart_lead(self) -> bool:
        """Restart the dead agent of the lead; return False if the method did not restart it. Raises HostProblem."""
        return False

    def give_up(self, problem: HostProblem) -> None:
        """React to a lead that has been out of reach for a whole lease; ``problem`` has the reason.

        Raises:
          CannotStart: always, with that reason, and the advice that the run may continue.
        """
        out_of_reach = HostProblem(self._lead, problem.kind, problem.what, advice=problem.advice)
        raise CannotStart([out_of_reach.with_advice(MAY_CONTINUE)])

    # -- methods that both share

    def follow(self) -> RunStatus:
        """Follow the run, and return its last status. Raises HostProblem where its lead is out of reach now."""
        self._received_at = time.monotonic()
        lead = self.begin()
        while lead is not None:
            why = ""
            try:
                if self._listen(lead):
                    break
            except HostProblem as problem:  # a broken stream is like one that ended: noted below
                if problem.kind is ProblemKind.NOISE:
                    why = f" ({problem.reason})"
                    time.sleep(BEAT_S)  # before another connection: a wrong program may always answer so
            finally:
                lead.close()
            self._view.note(f"lost the connection to {self._lead}{why}; retrying")
            lead = self.reattach()
        return self.status()

    def status(self) -> RunStatus:
        """Return the newest status of the run that the lead has sent."""
        return replace(self._status, tasks=list(self._tasks.values()))

    def _listen(self, lead: Conversation) -> bool:
        """Receive changes; return True when no more will come, False on a broken stream.

        A lead that is silent for ``SILENT_S`` seconds counts as a broken stream.
        """
        self._attached_at = time.monotonic()
        while min(self._silent_s(), time.monotonic() - self._attached_at) < SILENT_S:
            with contextlib.suppress(HostProblem):  # a lead that has ended may have sent lines that are not read yet
                self.relay(lead)
                self._beat(lead)
            try:
                change = lead.receive(BEAT_S / 2)
            except Silence:
                change = {}
            else:
                self._received_at = time.monotonic()
                self.note_answer(change or {})
            if change is None:
                return False
            if "end" in change:
                return self._knows_the_run()
            if change.get("run") is not None:
                self._take(change)
            if self.is_over(lead):
                return True
        return False

    def _knows_the_run(self) -> bool:
        """Return True. Raises HostProblem where the lead reported only the end of the run."""
        if not self._tasks:
            raise HostProblem(self._lead, ProblemKind.NOISE, "expected the run's status, found only its end")
        return True

    def _silent_s(self) -> float:
        """Return the seconds for which the lead was silent while this process listened.

        The time in which this process was stopped does not count, since a stopped process receives nothing.
        """
        now, continued_at = time.monotonic(), self._fleet.interrupts.continued_at
        if continued_at > self._looked_at + STOPPED_S:
            self._view.note(f"this launcher was stopped for {continued_at - self._looked_at:.0f} s and continues")
            self._received_at = max(self._received_at, continued_at)
        self._looked_at = now
        return now - self._received_at

    def _take(self, change: Mapping[str, Any]) -> None:
        with noise_if_malformed(self._lead):
            self._status = updated(self._status, change["run"])
            self._tasks.update({name: from_values(TaskStatus, task) for name, task in change["tasks"].items()})
        self._view.show(self.status())

    def _beat(self, lead: Conversation) -> None:
        if time.monotonic() >= self._beat_at:
            self._beat_at = time.monotonic() + BEAT_S
            lead.send(self.beat())

    def reattach(self) -> Optional[Conversation]:
        """Open a new conversation before the lease ends, and return it; None when nothing is left to follow."""
        host = self._fleet.hosts[self._lead]
        problem = HostProblem(self._lead, ProblemKind.SILENT, f"no answer within {LEASE_S:.0f} s")
        while self._silent_s() < LEASE_S and not self.is_unwanted():
            try:
                host.close()
                host.connect()
                if self._ended_meanwhile():
                    return None
                return self.attach()
            except HostProblem as error:
                problem = error
            time.sleep(BEAT_S)
        if not self.is_unwanted():
            self.give_up(problem)
        return None

    def _ended_meanwhile(self) -> bool:
        """Return whether the run has ended. Raises HostProblem where the lead's host has no status of the run."""
        answer = self._fleet.ask_host(self._fleet.hosts[self._lead], "status", self._reference, LEASE_S)
        is_restarted = answer.get("died") and self.restart_lead()
        if is_restarted or answer.get("agent"):
            self._received_at = time.monotonic()
        if is_restarted:
            return False
        values = answer["status"]
        if values is None:  # such as after a power cut: no conversation would bring more
            raise HostProblem(self._lead, ProblemKind.BROKEN, "no agent answers there, and none has left a status")
        status = as_run(self._lead, values)
        if status.state not in ENDED:
            return False
        self._status, self._tasks = status, by_name(status)
        self._view.show(self._status)
        return True


def by_name(status: RunStatus) -> Dict[str, TaskStatus]:
    """Return the tasks of a run by name."""
    return {task.name: task for task in status.tasks}
