"""Rules about the agents of a run's hosts: agents that join, replace an earlier agent or end too often, and lost hosts.

A restarted agent has another incarnation, a random text. The tasks of the earlier agent have ended with that agent.
They have not failed, so this does not count against ``restart.max``. A separate bound limits an agent's restarts.
"""

from collections import deque
from typing import Dict, List, Optional

from launch.agent.protocol.messages import Event, Go, Joined, Lost, Order
from launch.agent.supervision.agent_lives import Lives
from launch.agent.supervision.departures import Departures
from launch.agent.supervision.elastic import Formations
from launch.agent.supervision.incident import Incident
from launch.agent.supervision.restart_policy import Restarts
from launch.agent.supervision.run_state import Phase, SupervisedRun, SupervisionRule

LONG = 1.5  # times the silence after which a host is lost; only a host that returns by a boot is silent for longer


class Gathering(SupervisionRule):
    """The rule that starts the first tasks: after ``Go``, once every host has joined, is lost or is late.

    The launcher sends ``Go`` once every agent is ready. The agents then have ``join_s`` seconds to reach the lead.
    """

    def __init__(self, run: SupervisedRun, formations: Formations):
        super().__init__(run)
        self._plan, self._formations = run.plan, formations
        self._missing: Dict[str, None] = dict.fromkeys(run.plan.hosts)  # in the order of the plan
        self._go_at: Optional[float] = None

    def handle(self, event: Event, now: float) -> List[Order]:
        """Record which hosts have joined; return the orders that start the first tasks, once no host is missing."""
        if isinstance(event, Go):
            self._go_at = now
        elif isinstance(event, (Joined, Lost)):
            self._missing.pop(event.host, None)
        if self._run.state.phase is Phase.GATHERING:
            self._give_up_late_hosts(now)
        if self._run.state.phase is not Phase.GATHERING or self._go_at is None or self._missing:
            return []
        return self._formations.start_first(now)

    def _give_up_late_hosts(self, now: float) -> None:
        """Continue without the hosts whose agents should have joined by now, or fail the run."""
        is_late = self._go_at is not None and now - self._go_at > self._plan.join_s
        overdue, total = list(self._missing) if is_late else [], len(self._plan.hosts)
        joined = total - len(overdue)
        if joined < self._plan.quorum:
            join_s, quorum = self._plan.join_s, self._plan.quorum
            cause = f"{joined} of {total} hosts came back within {join_s:.0f} s, {quorum} are needed"
            self._run.close("failed", cause, now)
        for host in overdue:
            if self._run.state.phase is Phase.GATHERING:
                del self._missing[host]
                self._formations.drop(host, "not-started", self._reason(host), now)

    def _reason(self, host: str) -> str:
        """Return an error text for a host that is overdue."""
        what = f"its agent has not reached the lead agent at {self._plan.control} within {self._plan.join_s:.0f} s"
        return f"{what}; `launch check` names the closed port, or the name that resolves to another machine there"


class HostEvents(SupervisionRule):
    """The rule that reacts to a lost host, and to an agent that joins, joins again or replaces an earlier one."""

    def __init__(self, run: SupervisedRun, formations: Formations, departures: Departures, restarts: Restarts):
        super().__init__(run)
        self._formations, self._departures, self._restarts = formations, departures, restarts
        self._lives = Lives()

    def handle(self, event: Event, now: float) -> List[Order]:
        """Return the orders for an agent that joins, or for a lost host."""
        if isinstance(event, Joined):
            return self._admit(event, now)
        if isinstance(event, Lost):
            silence = f"no message for {event.silent_s:.0f} s (host down, network cut, or its agent ended)"
            cause = self._departures.as_cause(event.host) or silence
            return self._formations.drop(event.host, "host", cause, now)
        return []

    def _admit(self, event: Joined, now: float) -> List[Order]:
        another = self._lives.record_join(event.host, event.incarnation, now)
        if self._formations.admit(event.host, now):
            return []
        replaced = self._replace_agent(event.host, now, now - event.silent_s) if another else None
        is_long = event.silent_s > LONG * self._run.plan.lost_after_s
        return self._reconnect(event, replaced, now) if is_long else []

    def _replace_agent(self, host: str, now: float, ended_at: float) -> Incident:
        """Record that another agent has joined: the host's earlier agent ended, and its tasks with it."""
        run = self._run
        gone = [task for task in run.roster.by_host[host] if task.process]
        incident = run.incidents.begin("agent", ended_at, host=host, cause="its agent ended")
        for task in gone:
            if run.state.is_closing:
                run.roster.turn(task, "stopped", process=False)
            else:
                self._restarts.put(task, now)
            task.cause, task.samples = f"its agent on {host} ended", deque()
        names = ", ".join(task.plan.name for task in gone) or "none"
        run.incidents.record_action(f"a new agent joined; restarted tasks: {names}", now)
        too_many = self._lives.too_many(host, now)
        if too_many:
            run.close("failed", too_many, now)
        return incident

    def _reconnect(self, event: Joined, replaced: Optional[Incident], now: float) -> List[Order]:
        """Restart the tasks of all other hosts, which try less and less often to reach a host that is long away."""
        run = self._run
        if not run.trains:
            return []
        cause = f"no message for {event.silent_s:.0f} s (network cut, or host suspended)"
        incident = replaced or run.incidents.begin("host", now - event.silent_s, host=event.host, cause=cause)
        others = [name for name, task in run.tasks.items() if task.plan.host != event.host]
        orders = self._restarts.recall(others, now)
        run.incidents.expect_starts(others)
        run.incidents.expect_restart(incident, others)
        run.incidents.record_action(f"{event.host} joined again; the tasks of all other hosts restart", now)
        return orders
