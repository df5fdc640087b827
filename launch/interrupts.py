"""Signals that ask the launcher to stop, as something to look at instead of an exception."""

import os
import signal
import sys
import time
from types import FrameType, TracebackType
from typing import Any, Dict, List, Optional, Type

from launch.errors import Interrupted

HEEDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE = 3
SHOW_CURSOR = b"\x1b[?25h"
GOING = "{}: leaving at once; an attached run ends by itself within its lease, or now with `launch down`\n"
LOOK_S = 0.1


class Interrupts:
    """While entered, remembers signals in the order they came. Who sends ``PATIENCE`` of them wants no more waiting."""

    def __init__(self) -> None:
        self.received: List[int] = []
        self._former: Dict[int, Any] = {}

    def __enter__(self) -> "Interrupts":
        for number in HEEDED:
            self._former[number] = signal.signal(number, self._remember)
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)

    def _remember(self, number: int, frame: Optional[FrameType]) -> None:
        self.received.append(number)
        if len(self.received) == PATIENCE:
            leave_at_once(number)

    def wait(self, seconds: float) -> None:
        """Waits, less when a signal comes. Raises Interrupted if one has."""
        until = time.monotonic() + seconds
        while not self.received and time.monotonic() < until:
            time.sleep(min(LOOK_S, max(0.0, until - time.monotonic())))
        self.check()

    def check(self) -> None:
        """Raises Interrupted if a signal has come."""
        if self.received:
            raise Interrupted(self.received[0])

    def exit_code(self, otherwise: int) -> int:
        """128+n after signal n."""
        return 128 + self.received[0] if self.received else otherwise


def leave_at_once(number: int) -> None:
    """Ends this process by the signal itself, past whatever it waits for."""
    if sys.stdout.isatty():
        os.write(1, SHOW_CURSOR)  # which a live view hides
    os.write(2, GOING.format(signal.Signals(number).name).encode())
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
