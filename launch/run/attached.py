"""Follow an attached run: receive its status, renew its lease, restart its agents, and react to Ctrl-C and Ctrl-Z.

Ctrl-Z pauses the launcher and not the run: the launcher asks the lead to wait for the next beat without a time limit.

The launcher restarts an agent that died, or whose host was out of reach: it sends the host the agent's first request,
with ``again`` set. If that agent still lives, it continues, since only its connection was cut. Each try opens a new
connection, because the state of the previous one is unknown.
"""

import signal
import time
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from dataclasses import replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from cluster.protocol.quantity import quantity
from launch.agent.supervision.agent_lives import WINDOW_S, Ends
from launch.agent.wire.run_request import RunRequest
from launch.errors import HostProblem
from launch.fleet import Fleet
from launch.hosts.channel import Host, Silence
from launch.hosts.conversation import Conversation
from launch.plan.agent_requests import LEASE_S
from launch.plan.plan import Plan
from launch.run.follower import BEAT_S, Follower
from launch.status.run import RunStatus
from launch.view.plain_view import View

ENDING_S = 20.0  # for tries in progress, when the run is over
PART, LEAST_S, LONGEST_S = 0.1, 1.0, 15.0  # pause before the next try: a part of the silence so far, and its bounds
PAUSE_S = 3.0  # for the lead to confirm a pause
PAUSED = "paused: the run continues; `fg` continues this view, and `launch down` ends the run"
UNPAUSED = "{} has not confirmed the pause: the run ends unless this launcher continues within {:.0f} s"
ATTACHED = (
    "{} has not recorded that the run continues without this launcher; retrying (`launch check` looks at its disk)"
)


class Attached(Follower):
    """The follower of the run that this launcher has started, until the run ends or, with ``detach``, is up."""

    def __init__(self, fleet: Fleet, plan: Plan, requests: Mapping[str, RunRequest], view: View, detach: bool = False):
        super().__init__(fleet, RunStatus(plan.run, plan.spec.name, "starting"), view)
        self._interrupts, self._restarts, self._detach = fleet.interrupts, AgentRestarts(fleet, requests), detach
        self._relayed = 0
        self._heard: Any = None  # the lead's newest answer to a beat in this conversation
        self._heard_at = 0.0  # when that came
        self._paused = False  # the lead may wait for our next beat without a limit
        self.lead_lost_at: Optional[float] = None  # when it may last have sent or received a line, once it is lost

    def attach(self) -> Conversation:
        """Open a conversation, and let the run begin: its lead starts the tasks once all agents have joined.

        Each conversation sends ``go``, because an earlier ``go`` may have been lost with its connection. A lead whose
        run has begun ignores ``go``.
        """
        lead, self._heard, self._beat_at = super().attach(), None, 0.0
        lead.send({"do": "go"})
        return lead

    def begin(self) -> Optional[Conversation]:
        """Open the first conversation; after a failure, retry as after a broken connection.

        The agents have started, so an error at this point would leave the agents behind.
        """
        try:
            return self.attach()
        except HostProblem as problem:
            self._view.note(f"{problem}; retrying")
            return self.reattach()

    def go(self) -> RunStatus:
        """Let the run begin, follow it to its end (with ``detach``, until it is up), and return its last status.

        When ``go`` returns, the launcher starts no more agents.
        """
        try:
            with self._interrupts.pausable():
                return self.follow()
        finally:
            self._restarts.close()

    def is_unwanted(self) -> bool:
        """Return False: even after a signal, the launcher follows the run to its end."""
        return False

    def is_over(self, lead: Conversation) -> bool:
        """Return whether a detached run is up, and the lead has confirmed the detachment."""
        up = self._detach and self._status.state == "running" and not self._interrupts.received
        if not up:
            return False
        lead.send({"do": "detach"})
        if self._confirmed(lead, "detached", LEASE_S, beats=True):
            return True
        self._view.note(ATTACHED.format(self._lead))
        return False

    def _confirmed(self, lead: Conversation, word: str, timeout_s: float, beats: bool = False) -> bool:
        """Return whether the lead answers with ``word`` within ``timeout_s`` seconds.

        Meanwhile, apply the changes of the run that the lead sends, and with ``beats`` renew the lease.
        """
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            if beats:
                self._beat(lead)
            try:
                answer = lead.receive(BEAT_S)
            except Silence:
                continue
            if answer is None:
                return False
            self._received_at = time.monotonic()
            if beats:
                self.note_answer(answer)
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
        """Pass signals on to the lead: the first stops the run cleanly, the second kills the run.

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

    def beat(self) -> Dict[str, Any]:
        """Return a beat, which renews the lease up to the lead's newest answer."""
        return {"do": "beat", "heard": self._heard}

    def note_answer(self, change: Mapping[str, Any]) -> None:
        """Record the lead's answer to a beat, which ends a pause.

        After a time without answers, the next beat is sent at once.
        """
        if "beat" not in change:
            return
        moment = time.time()  # this clock counts a suspension
        if self._heard is None or moment > self._heard_at + 2 * BEAT_S:
            self._beat_at = 0.0
        self._heard, self._heard_at, self._paused = change["beat"], moment, False

    def reattach(self) -> Optional[Conversation]:
        """Return a new connection, over which ``relay`` repeats the requests of earlier signals.

        The earlier requests may have been lost with the old connection.
        """
        self._relayed = 0
        return super().reattach()

    def restart_lead(self) -> bool:
        """Restart the dead agent of the lead; return False after a signal, or if it has died too often."""
        if self._interrupts.received:
            return False
        refused = self._restarts.start_lead()
        if refused:
            self._view.note(f"{self._lead}: {refused}")
            return False
        self._view.note(f"{self._lead}: the lead agent died; restarted it")
        return True

    def give_up(self, problem: HostProblem) -> None:
        """Mark the run as failed, because the chief's host is out of reach.

        The launcher later takes down all the other hosts of the run directly, without the lead.
        """
        self.lead_lost_at = None if self._paused else max(self._received_at, self._attached_at)
        cause = f"{self._lead}: {problem.reason} (the chief's host was lost)"
        for name, task in self._tasks.items():
            if task.host == self._lead:
                self._tasks[name] = replace(task, state="lost", cause=cause)
        self._status = replace(self._status, state="failed", cause=cause)


class Try:
    """The tries to restart the agent of one host, which fell silent at ``since``."""

    def __init__(self, since: float) -> None:
        self.under_way: Optional[Future[Dict[str, Any]]] = None
        self.since = self.next_at = since
        self.begun = False
        self.said = ""

    def end(self, now: float) -> None:
        """Record the end of a try, and schedule the next one.

        The first pauses are short, because the keeper of a frozen agent kills that agent within seconds.
        """
        self.under_way = None
        self.next_at = now + min(LONGEST_S, max(LEAST_S, PART * (now - self.since)))


class AgentRestarts:
    """The restarts of the silent agents of an attached run.

    ``look`` never waits, because the tries run in the fleet's pool.

    Args:
      requests: the request that started the agent of each host.
    """

    def __init__(self, fleet: Fleet, requests: Mapping[str, RunRequest], clock: Callable[[], float] = time.monotonic):
        self._fleet, self._requests, self._clock = fleet, requests, clock
        self._tries: Dict[str, Try] = {}
        self._ends = Ends()  # of the lead's agent

    def look(self, silent: Sequence[str]) -> List[str]:
        """Begin tries for the hosts in ``silent``; return lines about a host's first try and about new failures."""
        now = self._clock()
        news: List[str] = []
        for host in [host for host in self._tries if host not in silent]:
            news += self._end_silence(host, now)
        for host in silent:
            tries = self._tries.setdefault(host, Try(now))
            if tries.under_way is not None and tries.under_way.done():
                news += _news(host, tries)
                tries.end(now)
            if tries.under_way is None and now >= tries.next_at:
                news += [] if tries.begun else [f"{host}: its agent is silent; restarting it"]
                tries.begun = True
                tries.under_way = self._fleet.begin(host, self._start)
        return news

    def _end_silence(self, host: str, now: float) -> List[str]:
        """Forget the tries for a host that is back, and return the news, one line each.

        The host's next silence then counts as a new one.

        A try in progress ends by itself.
        """
        tries = self._tries[host]
        if tries.under_way is not None and not tries.under_way.done():
            tries.since, tries.begun = now, False
            return []
        return _news(host, self._tries.pop(host))

    def start_lead(self) -> Optional[str]:
        """Restart the dead agent of the lead, and return None; if it has died too often, only return that reason.

        Raises:
          HostProblem: the agent cannot be started now.
        """
        now = self._clock()
        times = self._ends.too_many(now)
        if times:
            often = f"the lead agent ended {quantity(times, 'time')} within {WINDOW_S:.0f} s"
            return f"{often}, so this launcher does not restart it; see the run's agent.log on that host"
        if not self._start(self._fleet.hosts[self._fleet.lead]).get("lives"):
            self._ends.add(now)
        return None

    def _start(self, host: Host) -> Dict[str, Any]:
        host.close()
        host.connect()
        return self._fleet.start_agent(host, replace(self._requests[host.name], again=True))

    def close(self) -> None:
        """Wait for the tries in progress, so that no agent starts after the run's end."""
        pending = {tries.under_way: host for host, tries in self._tries.items() if tries.under_way is not None}
        _, late = wait_for(pending, timeout=ENDING_S)
        for each in late:
            self._fleet.hosts[pending[each]].close()  # the thread that waits for the host then stops


def _news(host: str, tries: Try) -> List[str]:
    """Return a line with the reason why a finished try failed, if that reason is new."""
    error = tries.under_way.exception() if tries.under_way is not None else None
    if error is not None and not isinstance(error, (HostProblem, OSError)):
        raise error
    reason = error.reason if isinstance(error, HostProblem) else str(error)
    said = f"{host}: its agent did not restart: {reason}" if error else ""
    changed, tries.said = said != tries.said, said
    return [said] if said and changed else []
