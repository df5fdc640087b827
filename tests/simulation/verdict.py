"""What became of a history: the promise that it breaks, another exception, or too long a wait for its end."""

import re
import signal
from contextlib import contextmanager
from types import FrameType
from typing import Iterator, Optional

from greenlet import getcurrent

from tests.simulation.promises import Broken
from tests.simulation.world import World

CPU_S = 60.0  # of a history; one takes a second or two, and much longer by the clock on a busy machine
REAL_PER_CPU = 20  # so many times as long by the clock, for one that waits without computing
HANG = "hang"


class _Hang(KeyboardInterrupt):
    """Too long; loops pass on no other exception of a callback, and no coroutine of the product takes it."""


def failure(world: World) -> Optional[str]:
    """Lets a history happen; which promise it breaks."""
    try:
        world.run()
    except Broken as error:
        return str(error)
    return None


def verdict(world: World, cpu_s: float = CPU_S) -> Optional[str]:
    """Lets a history happen for so many seconds of a processor; which promise it breaks, or what else went wrong.

    Only the main thread of a process may ask.
    """
    try:
        with _bound(cpu_s):
            return failure(world)
    except _Hang:
        return f"{HANG}: at {world.agenda.now:.1f} s after {cpu_s:.0f} seconds of a processor"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def promise(why: Optional[str]) -> str:
    """The promise of a failure's text; of exceptions in coroutines (I0) each kind is one of its own."""
    if why is None:
        return ""
    of = why.split(":")[0]
    exception = re.search(r": (\w+)\(", why) if of == "I0" else None
    return of if exception is None else f"{of} {exception.group(1)}"


@contextmanager
def _bound(cpu_s: float) -> Iterator[None]:
    began_here = getcurrent()

    def ring(number: int, frame: Optional[FrameType]) -> None:
        began_here.throw(_Hang)  # also where a strand runs, whose code may catch whatever it raises

    before = [(number, signal.signal(number, ring)) for number in (signal.SIGALRM, signal.SIGPROF)]
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    others = signal.setitimer(signal.ITIMER_REAL, cpu_s * REAL_PER_CPU)  # of pytest, which then begins again
    try:
        yield
    finally:
        for timer in (signal.ITIMER_REAL, signal.ITIMER_PROF):
            signal.setitimer(timer, 0.0)
        for number, handler in before:
            signal.signal(number, handler)
        signal.setitimer(signal.ITIMER_REAL, *others)
