"""The agents of a run's hosts: those that have yet to join, the current one of each host, and early ends.

A restarted agent has another incarnation, and none of the tasks of the one before: they ended
with it. Such an end is not the tasks' failure, so it does not count against ``restart.max``.
Instead a host whose agents keep ending has a bound of its own.
"""

from collections import defaultdict, deque
from typing import DefaultDict, Deque, Dict, List, Optional

from cluster.protocol.quantity import quantity
from launch.agent.wire.run_request import RunPlan

MOST = 5  # ends of a host's agent within ``WINDOW_S``; the next one fails the run
WINDOW_S = 600.0


class Gathering:
    """The hosts whose agents have yet to join, and the launcher's go.

    The launcher sends go once it has seen every agent ready. Agents then have ``join_s`` to reach the lead.
    """

    def __init__(self, plan: RunPlan):
        self._plan = plan
        self._missing: Dict[str, None] = dict.fromkeys(plan.hosts)  # in their order
        self._go_at: Optional[float] = None

    def record_go(self, now: float) -> None:
        """Record that the launcher has sent go."""
        self._go_at = now

    def discard(self, host: str) -> None:
        """Wait no longer for a host: its agent has joined, or is lost."""
        self._missing.pop(host, None)

    @property
    def is_complete(self) -> bool:
        """Return whether the run may begin."""
        return self._go_at is not None and not self._missing

    def overdue_hosts(self, now: float) -> List[str]:
        """Return the hosts whose agents should have joined by now."""
        late = self._go_at is not None and now - self._go_at > self._plan.join_s
        return list(self._missing) if late else []

    def lacks_quorum(self, now: float) -> Optional[str]:
        """Return an error text where too few hosts have joined in time for the run to begin; else None."""
        total = len(self._plan.hosts)
        joined = total - len(self.overdue_hosts(now))
        if joined >= self._plan.quorum:
            return None
        return f"{joined} of {total} hosts came back within {self._plan.join_s:.0f} s, {self._plan.quorum} are needed"

    def reason(self, host: str) -> str:
        """Return an error text for a host that is overdue."""
        what = f"its agent has not reached the lead at {self._plan.control} within {self._plan.join_s:.0f} s"
        return f"{what}; open this port between the hosts"


class Ends:
    """The times at which one host's agents ended, in seconds on any clock without jumps."""

    def __init__(self) -> None:
        self._at: Deque[float] = deque(maxlen=MOST + 1)

    def add(self, now: float) -> None:
        """Record the end of an agent."""
        self._at.append(now)

    def recent(self, now: float) -> int:
        """Return the number of ends within ``WINDOW_S``; it stays at ``MOST`` + 1 when there are more."""
        return sum(now - at <= WINDOW_S for at in self._at)

    def too_many(self, now: float) -> int:
        """Return the number of ends within ``WINDOW_S`` if above ``MOST``; else 0."""
        recent = self.recent(now)
        return recent if recent > MOST else 0


class Lives:
    """The current agent of each host, and the ends of earlier ones.

    Times are seconds on the clock of the supervisor.
    """

    def __init__(self) -> None:
        self._current: Dict[str, str] = {}
        self._ends: DefaultDict[str, Ends] = defaultdict(Ends)

    def record_join(self, host: str, incarnation: str, now: float) -> bool:
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
        return f"{host}: its agent ended {quantity(times, 'time')} within {WINDOW_S:.0f} s; {see}" if times else None
