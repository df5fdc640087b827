"""The pulse of an agent, which shows its keeper that the agent is not frozen.

An agent that is stopped, or stuck in the kernel, holds its lock and its tasks, and keeps none of its
promises. Such an agent would not kill its tasks when it no longer receives from the lead. So the
keeper kills an agent whose pulse is missing, before the lead has taken the host for lost.

A member may freeze after the lead has received nothing from it for a while, and the lead counts on. So each
beat grants the next one a time.

The pulse is a pipe: the agent writes a byte for every beat, and a last one when it closes. After the
last byte nobody counts. The pipe's end is the agent's.
"""

import asyncio
import contextlib
import os
from typing import Callable, Optional

from launch.agent.linux.open_files import readable

BEAT_S = 0.5
PART = 0.8  # of the silence after which a host is lost
LEAST_S = 8.0  # a busy machine may keep a healthy agent waiting for seconds
CHANCE_S = 1.0  # for an agent that was stopped together with its keeper, as machines are
SHORTEST_S = 1.0  # for a beat whose agent must soon kill its tasks
_PARTS = 100  # of the keeper's patience: a beat is the number of those that it grants
_END = 0


class Pulse:
    """Both ends of the pipe. Call ``mine`` in the agent and ``watch`` in the keeper, after the fork.

    ``begun`` is whether ``watch`` has received a beat, so whether the agent was ready. ``waited_s`` are the seconds for
    which it waits for the next one.
    """

    def __init__(self) -> None:
        self.begun, self.waited_s = False, 0.0
        self._out, self._in = os.pipe()

    def mine(self) -> None:
        """Make the pulse the agent's from now on."""
        os.close(self._out)
        os.set_blocking(self._in, False)  # a keeper that does not read must not hold the agent up

    async def beat(self, patience_s: float, left_s: Callable[[], float]) -> None:
        """Write beats until cancelled, which ends the pulse.

        Args:
          patience_s: the keeper's.
          left_s: returns the seconds until the tasks of this host must be gone.
        """
        try:
            while True:
                self._write(max(1, int(_PARTS * granted_s(patience_s, left_s()) / patience_s)))
                await asyncio.sleep(BEAT_S)
        finally:
            self._write(_END)

    def _write(self, what: int) -> None:
        with contextlib.suppress(BlockingIOError, BrokenPipeError):  # the keeper is frozen, or gone
            os.write(self._in, bytes([what]))

    def watch(self, patience_s: float, first_s: Optional[float] = None) -> bool:
        """Return whether the pulse went missing for ``patience_s``, or for the part of it that the last beat granted.

        The result is False when the agent has closed, or is gone. The first beat may take ``first_s``; with None it may
        take as long as it takes to prepare a host.
        """
        os.close(self._in)
        part = 1.0
        try:
            while True:
                waits = (part * patience_s, CHANCE_S) if self.begun else (first_s,)
                self.waited_s = sum(wait or 0.0 for wait in waits)
                if not any(readable(self._out, wait) for wait in waits):
                    return True
                beats = os.read(self._out, 65536)
                if not beats or _END in beats:
                    return False
                self.begun, part = True, beats[-1] / _PARTS
        finally:
            os.close(self._out)


def patience_s(lost_after_s: float) -> float:
    """Return the seconds for which a pulse may be missing.

    A host is lost after ``lost_after_s``.
    """
    return max(LEAST_S, PART * lost_after_s)


def granted_s(patience_s: float, left_s: float) -> float:
    """Return the seconds that a beat grants the next one, where an agent's tasks must be gone in ``left_s``."""
    return min(patience_s, max(SHORTEST_S, left_s - CHANCE_S))
