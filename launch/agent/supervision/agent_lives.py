"""The agents of a host, one after the other, and the bound for how often they end.

The keeper of a host, the lead and the launcher count in the same way. So this module loads none of the lead's rules.
"""

from collections import defaultdict, deque
from typing import DefaultDict, Deque, Dict, Optional

from cluster.protocol.quantity import quantity

MOST = 5  # ends of a host's agent within ``WINDOW_S``; the next end fails the run
WINDOW_S = 600.0


class Ends:
    """The times at which the agents of one host ended, in seconds on any monotonic clock."""

    def __init__(self) -> None:
        self._at: Deque[float] = deque(maxlen=MOST + 1)

    def add(self, now: float) -> None:
        """Record the end of an agent."""
        self._at.append(now)

    def recent(self, now: float) -> int:
        """Return how many agents ended within the last ``WINDOW_S`` seconds; the count stops at ``MOST`` + 1."""
        return sum(now - at <= WINDOW_S for at in self._at)

    def too_many(self, now: float) -> int:
        """Return how many agents ended within the last ``WINDOW_S`` seconds if more than ``MOST`` did; else 0."""
        recent = self.recent(now)
        return recent if recent > MOST else 0


class Lives:
    """The current agent of each host, and the ends of each host's earlier agents.

    Times are seconds on the clock of the supervisor.
    """

    def __init__(self) -> None:
        self._current: Dict[str, str] = {}
        self._ends: DefaultDict[str, Ends] = defaultdict(Ends)

    def record_join(self, host: str, incarnation: str, now: float) -> bool:
        """Record that an agent joined; return whether the agent replaces an earlier one of the same host."""
        before = self._current.get(host)
        self._current[host] = incarnation
        if before in (None, incarnation):
            return False
        self._ends[host].add(now)
        return True

    def too_many(self, host: str, now: float) -> Optional[str]:
        """Return an error text for a host whose agents end too often; else None."""
        times = self._ends[host].too_many(now)
        see = "see the run's agent.log on that host"
        return f"{host}: its agent ended {quantity(times, 'time')} within {WINDOW_S:.0f} s; {see}" if times else None
