"""Starting agents again that died under an attached run, or whose hosts were away.

A host's agent gets the request it was started with, and ``again``: one that lives is left alone,
since only its cable was cut. Each try has a connection of its own, because nobody knows what
became of the one before.
"""

import time
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from dataclasses import replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from launch.agent.supervision.lives import Ends
from launch.agent.wire.run_request import RunRequest
from launch.errors import HostProblem
from launch.fleet import Fleet
from launch.hosts.channel import Host

ENDING_S = 20.0  # for tries under way, when the run is over
PART, LEAST_S, LONGEST_S = 0.1, 1.0, 15.0  # the pause before the next try, as a part of how long it is silent


class Try:
    """The tries to start one host's agent again, which fell silent at ``since``."""

    def __init__(self, since: float) -> None:
        self.under_way: Optional[Future[Dict[str, Any]]] = None
        self.since = self.next_at = since
        self.begun = False
        self.said = ""

    def end(self, now: float) -> None:
        """It is over. At first the next one is soon: the keeper of an agent that froze kills it within seconds."""
        self.under_way = None
        self.next_at = now + min(LONGEST_S, max(LEAST_S, PART * (now - self.since)))


class Revival:
    """Keeps agents of an attached run alive. ``look`` never waits: tries run in the fleet's pool.

    Args:
      requests: what each host's agent was started with.
    """

    def __init__(self, fleet: Fleet, requests: Mapping[str, RunRequest], clock: Callable[[], float] = time.monotonic):
        self._fleet, self._requests, self._clock = fleet, requests, clock
        self._tries: Dict[str, Try] = {}
        self._ends = Ends()  # of the lead's agent

    def look(self, silent: Sequence[str]) -> List[str]:
        """Begins tries for the hosts that are silent now; returns what there is to tell, in lines."""
        now, told = self._clock(), []
        for host in [host for host in self._tries if host not in silent and not self._tries[host].under_way]:
            del self._tries[host]
        for host in silent:
            tries = self._tries.setdefault(host, Try(now))
            if tries.under_way is not None and tries.under_way.done():
                told += _news(host, tries)
                tries.end(now)
            if tries.under_way is None and now >= tries.next_at:
                told += [] if tries.begun else [f"{host}: its agent is not heard; starting it again"]
                tries.begun = True
                tries.under_way = self._fleet.begin(host, self._start)
        return told

    def start_lead(self) -> bool:
        """Starts the lead's agent, which has died, again; False where it has died too often.

        Raises:
          HostProblem: it cannot be started now.
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
        """Waits for the tries under way, so that no agent begins after the run's end."""
        pending = {tries.under_way: host for host, tries in self._tries.items() if tries.under_way is not None}
        _, late = wait_for(pending, timeout=ENDING_S)
        for each in late:
            self._fleet.hosts[pending[each]].close()  # what waits for the host there gets to know it


def _news(host: str, tries: Try) -> List[str]:
    """What the try that is over has come to, where that is another thing than before."""
    error = tries.under_way.exception() if tries.under_way is not None else None
    if error is not None and not isinstance(error, (HostProblem, OSError)):
        raise error
    reason = error.reason if isinstance(error, HostProblem) else str(error)
    said = f"{host}: its agent was not started again: {reason}" if error else ""
    changed, tries.said = said != tries.said, said
    return [said] if said and changed else []
