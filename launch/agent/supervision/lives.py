"""The lives of the agents of a run: which one each host is in, and how often one ended too soon.

An agent that ended and was started again has another incarnation, and none of the tasks of the
one before: they ended with it. That is not their failure, so it does not count against
``restart.max``; instead a host whose agents keep ending has a bound of its own.
"""

from collections import defaultdict, deque
from typing import DefaultDict, Deque, Dict, Optional

MOST = 5  # ends of a host's agent within ``WINDOW_S``; the next one fails the run
WINDOW_S = 600.0


class Ends:
    """When one host's agents have ended, in seconds on any clock that does not jump."""

    def __init__(self) -> None:
        self._at: Deque[float] = deque(maxlen=MOST + 1)

    def add(self, now: float) -> None:
        """One has ended."""
        self._at.append(now)

    def too_many(self, now: float) -> int:
        """How many there were within ``WINDOW_S``, where that is more than ``MOST``; else 0."""
        recent = sum(now - at <= WINDOW_S for at in self._at)
        return recent if recent > MOST else 0


class Lives:
    """Times are seconds on the clock of the supervisor."""

    def __init__(self) -> None:
        self._current: Dict[str, str] = {}
        self._ends: DefaultDict[str, Ends] = defaultdict(Ends)

    def joined(self, host: str, incarnation: str, now: float) -> bool:
        """Takes in that an agent joined; whether it is another one than the host had before."""
        before = self._current.get(host)
        self._current[host] = incarnation
        if before in (None, incarnation):
            return False
        self._ends[host].add(now)
        return True

    def too_many(self, host: str, now: float) -> Optional[str]:
        """What to say of a host whose agents end too often; None where they do not."""
        times = self._ends[host].too_many(now)
        see = "see agent.log of this run there"
        return f"{host}: its agent ended {times} times within {WINDOW_S:.0f} s; {see}" if times else None
