"""The keeper's decisions, without processes, pipes and clocks: whether an agent is frozen, and what follows its end.

The *pulse*, a series of heartbeats, shows that the agent is not frozen. A stopped agent, or an agent that hangs in the
kernel, keeps its lock and its tasks, but no longer acts. It would not kill its tasks when the lead falls silent. So the
keeper kills an agent whose heartbeats are missing, before the lead counts the host as lost.

A member may freeze at a time when the lead has already received nothing from the member for a while. So each beat
has the time limit for the next beat. A machine may also be suspended while its agent is frozen; the lead continues to
count. So where the tasks of a member must be gone after a silence, the keeper counts the suspension, too.

A beat is one byte. The agent writes a last byte when it closes the pulse; after that byte the keeper no longer
counts.
"""

import asyncio
import math
from typing import Callable, NamedTuple, Optional

from launch.agent.supervision.agent_lives import Ends

BEAT_S = 0.5
PART = 0.8  # of the silence after which a host is lost
LEAST_S = 8.0  # a busy machine may keep a healthy agent waiting for seconds
CHANCE_S = 1.0  # for an agent that was stopped together with its keeper, as machines are
SLEPT_S = 3.0  # a shorter suspension does not count: a healthy agent needs its time after it
SHORTEST_S = 1.0  # for a beat whose agent must soon kill its tasks
LOOK_S = 0.5  # between two looks at the clocks
_PARTS = 100  # of the keeper's patience: a beat is the number of parts that it grants
_MUST_GO = 100  # added to a beat where the tasks must be gone after a silence
END = 0  # the last byte

OVER, FAILED = 0, 1  # exit codes of an agent: its part of the run is over; the agent could not begin
AWAY, TAKEN = 3, 4  # it continues after a boot of the host; another agent has the name
FIRST_PAUSE_S, LONGER, LONGEST_PAUSE_S = 0.5, 4.0, 60.0  # before the next agent; longer after ends in quick succession
BEGIN_S = 60.0  # for the first beat of a next agent


def patience_s(lost_after_s: float) -> float:
    """Return the seconds for which heartbeats may be missing, if a host is lost after ``lost_after_s`` of silence."""
    return max(LEAST_S, PART * lost_after_s)


def granted_s(patience_s: float, left_s: float) -> float:
    """Return the time limit in seconds for the next heartbeat, if tasks must be gone in ``left_s`` seconds.

    The limit is at most ``patience_s``.
    """
    return min(patience_s, max(SHORTEST_S, left_s - CHANCE_S))


async def beat(write: Callable[[int], None], patience_s: float, left_s: Callable[[], float]) -> None:
    """Send heartbeats until this coroutine is cancelled; then send the last byte, which ends them.

    Args:
      write: writes one byte to the keeper.
      patience_s: the seconds for which heartbeats may be missing.
      left_s: returns the seconds until the tasks of this host must be gone.
    """
    try:
        while True:
            left = left_s()
            granted = max(1, int(_PARTS * granted_s(patience_s, left) / patience_s))
            write(granted + (_MUST_GO if left < math.inf else 0))
            await asyncio.sleep(BEAT_S)
    finally:
        write(END)


class Moment(NamedTuple):
    """A time in seconds, by two clocks; ``awake`` stands still while the machine is suspended."""

    awake: float
    since_boot: float


class PulseWatch:
    """The decision whether the heartbeats of one agent are missing.

    ``wait_s`` is the longest time to wait for the next byte; None for no bound. ``begun`` is True once a heartbeat
    has arrived, which shows that the agent was ready.

    Args:
      patience_s: the longest time between two heartbeats; a heartbeat may grant only a part of it for the next one.
      now: the time at which the agent started.
      first_s: the seconds within which the first heartbeat must arrive; None for no bound, since the preparation of a
        host may take long.
    """

    def __init__(self, patience_s: float, now: Moment, first_s: Optional[float] = None):
        self.wait_s: Optional[float] = None
        self.begun = self.is_missing = self._is_closed = False
        self._patience_s, self._since = patience_s, now
        self._granted_s = None if first_s is None else first_s - CHANCE_S
        self._must_go = False
        self._last_chance: Optional[float] = None  # the end of the chance for a pulse that is late

    @property
    def waited_s(self) -> float:
        """Return the seconds without a heartbeat after which the agent counts as frozen."""
        return (self._granted_s or 0.0) + CHANCE_S

    def read(self, beats: bytes, now: Moment) -> None:
        """Process the bytes that have arrived; no bytes mean that the pipe, and so the agent, has ended."""
        self._is_closed = not beats or END in beats
        if not self._is_closed:
            self.begun, self._must_go = True, beats[-1] > _MUST_GO
            parts = beats[-1] - (_MUST_GO if self._must_go else 0)
            self._granted_s, self._since, self._last_chance = self._patience_s * parts / _PARTS, now, None

    def goes_on(self, now: Moment) -> bool:
        """Return whether to wait for more bytes; False once heartbeats are missing or the pulse is closed."""
        if self._is_closed or self._granted_s is None:
            return not self._is_closed
        left_s = self._left_s(now, self._granted_s)
        if self._last_chance is None and left_s <= 0:
            self._last_chance = now.awake + CHANCE_S
        if self._last_chance is None:
            self.wait_s = min(LOOK_S, left_s)
        else:
            self.wait_s = self._last_chance - now.awake
            self.is_missing = self.wait_s <= 0
        return not self.is_missing

    def _left_s(self, now: Moment, granted_s: float) -> float:
        """Return the time left for the next beat, in seconds; a suspension counts where tasks must be gone."""
        awake_s = now.awake - self._since.awake
        slept_s = now.since_boot - self._since.since_boot - awake_s
        counts = self._must_go and slept_s > SLEPT_S
        return granted_s - awake_s - (slept_s - SLEPT_S if counts else 0.0)


def owns_records(code: int) -> bool:
    """Return whether the run's records on this host belong to the agent that ended with this exit code."""
    return code != TAKEN


class Keeping:
    """The decision whether another agent follows the end of an agent, and after which pause.

    If the first agent was never ready, no agent follows: the launcher reports its end. ``code`` is the exit code of
    the newest agent. ``too_many`` is the number of recent ends if agents have ended too often; else 0.

    Args:
      restarts: whether another agent replaces a dead agent of this run.
    """

    def __init__(self, restarts: bool):
        self.code, self.too_many = FAILED, 0
        self._restarts, self._has_begun, self._ends = restarts, False, Ends()

    def ended(self, code: int, begun: bool, now: float) -> Optional[float]:
        """Record the end of an agent; return the pause in seconds before the next agent, None where no agent follows.

        Args:
          code: the exit code of the agent.
          begun: whether the agent was ready.
        """
        self.code, self._has_begun = code, self._has_begun or begun
        return self.pause_s(now) if self._continues and code not in (OVER, AWAY) else None

    def pause_s(self, now: float) -> Optional[float]:
        """Record one more end, or a failed start; return the seconds until the next start, None after too many ends."""
        self._ends.add(now)
        self.too_many = self._ends.too_many(now)
        longer_s = FIRST_PAUSE_S * LONGER ** (self._ends.recent(now) - 1)
        return None if self.too_many else min(LONGEST_PAUSE_S, longer_s)

    @property
    def removes_unit(self) -> bool:
        """Return whether to remove the boot unit once no agent follows, so that no boot of the host starts an agent."""
        return self.code == OVER or (self._continues and self.code != AWAY)

    @property
    def _continues(self) -> bool:
        return self._restarts and self._has_begun
