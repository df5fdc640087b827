"""The lives of a run's agents: the current one of each host, and early ends.

A restarted agent has another incarnation, and none of the tasks of the one before: they ended
with it. Such an end is not the tasks' failure, so it does not count against ``restart.max``.
Instead a host whose agents keep ending has a bound of its own.
"""

from collections import defaultdict, deque
from typing import DefaultDict, Deque, Dict, Optional

MOST = 5  # ends of a host's agent within ``WINDOW_S``; the next one fails the run
WINDOW_S = 600.0


class Ends:
    """The times at which one host's agents ended, in seconds on any clock without jumps."""

    def __init__(self) -> None:
        self._at: Deque[float] = deque(maxlen=MOST + 1)

    def add(self, now: float) -> None:
        """Record the end of an agent."""
        self._at.append(now)

    def too_many(self, now: float) -> int:
        """Return the number of ends within ``WINDOW_S`` if above ``MOST``; else 0."""
        recent = sum(now - at <= WINDOW_S for at in self._at)
        return recent if recent > MOST else 0


class Lives:
    """The current agent of each host, and the ends of earlier ones.

    Times are seconds on the clock of the supervisor.
    """

    def __init__(self) -> None:
        self._current: Dict[str, str] = {}
        self._ends: DefaultDict[str, Ends] = defaultdict(Ends)

    def joined(self, host: str, incarnation: str, now: float) -> bool:
        """Record that an agent joined; return whether it replaces another one of the host."""
        before = self._current.get(host)
        self._current[host] = incarnation
        if before in (None, incarnation):
            return False
        self._ends[host].add(now)
        return True

    def too_many(self, host: str, now: float) -> Optional[str]:
        """Return an error text for a host whose agents end too often; else None."""
        times = self._ends[host].too_many(now)
        see = "see agent.log of this run there"
        return f"{host}: its agent ended {times} times within {WINDOW_S:.0f} s; {see}" if times else None
