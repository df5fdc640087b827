"""Blocking code in the simulated world: strands of which one runs at a time, and only while the world lets it.

A strand is a thread of a simulated program, and in truth a greenlet. It runs until it blocks: then it is parked with
the time or the condition that it waits for, and the world goes on. So what blocking code does has one order, as the
world's other events have.
"""

import asyncio
import math
from typing import Any, Callable, List, Optional, Sequence

from greenlet import GreenletExit, getcurrent, greenlet

from tests.simulation import loops
from tests.simulation.loops import AgentLoop

Ready = Callable[[], bool]
_LEAST_S = 1e-9  # a shorter wait is over


class Gone(BaseException):
    """The program has ended, and this thread with it; no product code handles it."""


class Bell:
    """What strands wait for: whoever changes something rings, and each of them looks whether it may go on."""

    def __init__(self) -> None:
        self.waiting: List[Strand] = []

    def ring(self) -> None:
        """Let the waiting strands look, once the world's present event is over."""
        for strand in self.waiting:
            strand.look_soon()


class Strand:
    """A thread of a program.

    Args:
      program: has the loop with the clock, and knows whether anything of it can run.
      function: what the thread does.
    """

    def __init__(self, program: Any, function: Callable[[], object]):
        self._program, self._function = program, function
        self._until, self._ready = -math.inf, _never
        self._looks_at = math.inf  # the time of the next look that is not by a bell
        self._runs = self.is_over = self._is_dropped = False
        self.ended = Bell()
        self._greenlet: Any = greenlet(self._run)
        self.look_soon()

    # -- in the world

    def look_soon(self) -> None:
        """Let the world look at this strand next."""
        self._program.agenda.add(self._program.agenda.now, self.look)

    def look(self) -> None:
        """Go on, if what the strand waits for has come."""
        program = self._program
        if self.is_over or self._runs:
            return
        if not program.is_over:
            if not program.can_run:
                return  # the program looks at all of its strands when it goes on
            if not self._ready() and program.loop.time() < self._until - _LEAST_S:
                self._look_at_the_time()
                return
        self.go_on()

    def _look_at_the_time(self) -> None:
        """Look again when the time has come; a suspension may have moved that."""
        if self._until < math.inf:
            when = self._program.loop.clock.when(self._until)
            if when > self._program.agenda.now + _LEAST_S:
                self._look_at(when)

    def _look_at(self, when: float) -> None:
        """Let the world look at that time, unless it looks earlier: that look finds when to look again."""
        if when < self._looks_at:
            self._looks_at = when
            self._program.agenda.add(when, self._look_in_time, when)

    def _look_in_time(self, when: float) -> None:
        if when == self._looks_at:  # else an earlier look took its place
            self._looks_at = math.inf
            self.look()

    def go_on(self) -> None:
        """Let the strand run until it parks again, or ends."""
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self._program.loop)
        self._runs, self._greenlet.parent = True, getcurrent()
        try:
            self._greenlet.switch()
        finally:
            self._runs = False
            asyncio._set_running_loop(before)

    # -- in the strand

    def park(self, until: float, ready: Ready, bells: Sequence[Bell] = ()) -> None:
        """Wait until a time of the program's clock, or until something is ready. Raises Gone."""
        if self._program.is_over or self._is_dropped:
            raise Gone
        self._until, self._ready = until, ready
        if until < math.inf:
            self._look_at(self._program.loop.clock.when(until))
        for bell in bells:
            bell.waiting.append(self)
        try:
            self._greenlet.parent.switch()
        except GreenletExit:  # nobody has this strand any more: its world is over
            self._is_dropped = True
        for bell in bells:
            bell.waiting.remove(self)
        if self._program.is_over or self._is_dropped:
            raise Gone

    def _run(self) -> None:
        self._greenlet.strand = self
        try:
            if not self._program.is_over:
                self._function()
        except Gone:
            pass
        except loops.Gone:  # in a change of a file
            self._program.end(-9)
        except BaseException as error:
            self._program.failed(error)
        finally:
            self.is_over = True
            self.ended.ring()


def _never() -> bool:
    return False


def present() -> Optional[Strand]:
    """Return the strand that runs now; None in an agent, and in the world itself."""
    strand: Optional[Strand] = getattr(getcurrent(), "strand", None)
    return strand


def wait(seconds: float, ready: Ready = _never, *bells: Bell) -> bool:
    """Let the present strand wait for so long at most; return whether what it waits for is ready."""
    strand, loop = getcurrent().strand, asyncio.get_event_loop()
    least_s = 2 * _LEAST_S if seconds > 0 else 0.0  # who waits for the rest again and again must get on
    until = loop.time() + max(least_s, seconds)
    while not ready() and loop.time() < until - _LEAST_S:
        strand.park(until, ready, bells)
    return ready()


def running() -> Optional[Any]:
    """Return the program whose thread runs now; None in an agent, and in the world itself."""
    return getattr(asyncio._get_running_loop(), "program", None)


class Spot(AgentLoop):
    """The clock and the connections of a program that blocks; it runs no coroutine."""

    def __init__(self, program: Any, machine: Any, clock: Any, host: str, network: Any):
        super().__init__(program.agenda, clock, host, network, program.fail)
        self.program, self.machine = program, machine
