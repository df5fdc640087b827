"""Restart agents of an attached run that died, or whose hosts were away.

The launcher sends a host's agent the request that started it, with ``again`` set. An agent that lives is left
alone, since only its connection was cut. Each try opens its own connection, because the state of the previous
connection is unknown.
"""

import time
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from dataclasses import replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from launch.agent.supervision.agents import Ends
from launch.agent.wire.run_request import RunRequest
from launch.errors import HostProblem
from launch.fleet import Fleet
from launch.hosts.channel import Host

ENDING_S = 20.0  # for tries under way, when the run is over
PART, LEAST_S, LONGEST_S = 0.1, 1.0, 15.0  # the pause before the next try, as a part of how long it is silent


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
    """Keep the agents of an attached run alive.

    ``look`` never waits, because the tries run in the fleet's pool.

    Args:
      requests: the request that started the agent of each host.
    """

    def __init__(self, fleet: Fleet, requests: Mapping[str, RunRequest], clock: Callable[[], float] = time.monotonic):
        self._fleet, self._requests, self._clock = fleet, requests, clock
        self._tries: Dict[str, Try] = {}
        self._ends = Ends()  # of the lead's agent

    def look(self, silent: Sequence[str]) -> List[str]:
        """Begin tries for the hosts that are silent now, and return news in lines."""
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
        """Forget the tries for a host that is back, so that its next silence is another one; return news in lines.

        A try that is under way ends by itself.
        """
        tries = self._tries[host]
        if tries.under_way is not None and not tries.under_way.done():
            tries.since, tries.begun = now, False
            return []
        return _news(host, self._tries.pop(host))

    def start_lead(self) -> bool:
        """Restart the dead agent of the lead; return False where it has died too often.

        Raises:
          HostProblem: the agent cannot be started now.
        """
        now = self._clock()
        if self._ends.too_many(now):
            return False
        if not self._start(self._fleet.hosts[self._fleet.lead]).get("lives"):
            self._ends.add(now)
        return True

    def _start(self, host: Host) -> Dict[str, Any]:
        host.close()
        host.connect()
        return self._fleet.start_agent(host, replace(self._requests[host.name], again=True))

    def close(self) -> None:
        """Wait for the tries under way, so that no agent starts after the run's end."""
        pending = {tries.under_way: host for host, tries in self._tries.items() if tries.under_way is not None}
        _, late = wait_for(pending, timeout=ENDING_S)
        for each in late:
            self._fleet.hosts[pending[each]].close()  # what waits for the host there gets to know it


def _news(host: str, tries: Try) -> List[str]:
    """Return a line with the reason that a finished try failed, where the reason is new."""
    error = tries.under_way.exception() if tries.under_way is not None else None
    if error is not None and not isinstance(error, (HostProblem, OSError)):
        raise error
    reason = error.reason if isinstance(error, HostProblem) else str(error)
    said = f"{host}: its agent did not restart: {reason}" if error else ""
    changed, tries.said = said != tries.said, said
    return [said] if said and changed else []
