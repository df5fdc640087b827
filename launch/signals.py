"""Record signals that ask the launcher to stop or to pause, instead of raising an exception."""

import contextlib
import os
import signal
import sys
import time
from contextlib import contextmanager
from types import FrameType
from typing import Any, Dict, Iterator, List, Optional

from launch.errors import Interrupted

HEEDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE = 3
SHOW_CURSOR = b"\x1b[?25h"
GOING = "{}: leaving at once; an attached run ends by itself within its lease; `launch down` ends it now\n"
LOOK_S = 0.1


class Interrupts:
    """A record of the signals that arrive inside a ``with`` block, in the order of their arrival.

    After ``PATIENCE`` signals this process ends at once, without any more waiting. A signal that this process was
    started to ignore stays ignored: ``nohup`` ignores SIGHUP, and a shell ignores SIGINT for its background jobs.

    ``continued_at``: the time at which this process continued after a stop, by ``time.monotonic()``. ``pause_asked``:
    whether a Ctrl-Z came within ``pausable``, and ``pause`` was not called since then.
    """

    def __init__(self) -> None:
        self.received: List[int] = []
        self.pause_asked = False
        self.continued_at = 0.0
        self._former: Dict[int, Any] = {}

    def __enter__(self) -> "Interrupts":
        for number in HEEDED:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._former[number] = signal.signal(number, self._remember)
        self._former[signal.SIGCONT] = signal.signal(signal.SIGCONT, self._go_on)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)

    def _remember(self, number: int, frame: Optional[FrameType]) -> None:
        self.received.append(number)
        if len(self.received) == PATIENCE:
            leave_at_once(number)

    def _go_on(self, number: int, frame: Optional[FrameType]) -> None:
        self.continued_at = time.monotonic()

    @contextmanager
    def pausable(self) -> Iterator[None]:
        """In this block, record a Ctrl-Z in ``pause_asked``, instead of stopping this process at once."""
        former = signal.getsignal(signal.SIGTSTP)
        if former is signal.SIG_IGN:  # set by a shell without job control
            yield
            return
        signal.signal(signal.SIGTSTP, self._ask)
        try:
            yield
        finally:
            signal.signal(signal.SIGTSTP, former)

    def _ask(self, number: int, frame: Optional[FrameType]) -> None:
        self.pause_asked = True

    def pause(self) -> None:
        """Stop this process until it is continued."""
        self.pause_asked = False
        os.kill(os.getpid(), signal.SIGSTOP)

    def wait(self, seconds: float) -> None:
        """Wait ``seconds``, or until a signal comes. Raises Interrupted if a signal has come."""
        until = time.monotonic() + seconds
        while not self.received and time.monotonic() < until:
            time.sleep(min(LOOK_S, max(0.0, until - time.monotonic())))
        self.check()

    def check(self) -> None:
        """Raise Interrupted if a signal has come."""
        if self.received:
            raise Interrupted(self.received[0])

    def exit_code(self, otherwise: int) -> int:
        """Return 128+n after signal n, else ``otherwise``."""
        return 128 + self.received[0] if self.received else otherwise


class NoSignals(Interrupts):
    """Signals that the caller itself handles, as a notebook's kernel does: no handler of this process changes.

    The caller may append a signal's number to ``received``, and the work then ends as after that signal.
    """

    def __enter__(self) -> "NoSignals":
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing, because no handler has changed."""

    @contextmanager
    def pausable(self) -> Iterator[None]:
        """Leave Ctrl-Z to the caller in this block, as outside it."""
        yield


def leave_at_once(number: int) -> None:
    """End this process by the signal itself, even while the process waits."""
    with contextlib.suppress(OSError):  # nobody may be there to read
        if sys.stdout.isatty():
            os.write(1, SHOW_CURSOR)  # a live view hides the cursor
        os.write(2, GOING.format(signal.Signals(number).name).encode())
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
