"""The lives of the agents of a run: which one each host is in, and how often one ended too soon.

An agent that ended and was started again has another incarnation, and none of the tasks of the
one before: they ended with it. That is not their failure, so it does not count against
``restart.max``; instead a host whose agents keep ending has a bound of its own.
"""

from collections import deque
from typing import Deque, Dict, Optional

MOST = 5  # ends of a host's agent within ``WINDOW_S``; the next one fails the run
WINDOW_S = 600.0


class Lives:
    """Times are seconds on the clock of the supervisor."""

    def __init__(self) -> None:
        self._current: Dict[str, str] = {}
        self._ends: Dict[str, Deque[float]] = {}

    def joined(self, host: str, incarnation: str, now: float) -> bool:
        """Takes in that an agent joined; whether it is another one than the host had before."""
        before = self._current.get(host)
        self._current[host] = incarnation
        if before in (None, incarnation):
            return False
        ends = self._ends.setdefault(host, deque(maxlen=MOST + 1))
        ends.append(now)
        return True

    def too_many(self, host: str, now: float) -> Optional[str]:
        """What to say of a host whose agents end too often; None where they do not."""
        recent = [end for end in self._ends.get(host, ()) if now - end <= WINDOW_S]
        if len(recent) <= MOST:
            return None
        return f"{host}: its agent ended {len(recent)} times within {WINDOW_S:.0f} s; see agent.log of this run there"
