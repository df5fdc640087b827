"""Waiting for what must come: tests sleep for nothing else."""

import sys
import threading
import time
import traceback
from typing import Any, Callable

PATIENCE_S = 120.0  # more than a busy machine needs
LOOKS = 0.1  # the part of the time that looking may take: a look may start processes on a host
LEAST_S, MOST_S = 0.02, 0.5  # between two looks


def eventually(what: str, condition: Callable[[], Any], patience_s: float = PATIENCE_S) -> Any:
    """The first true value of ``condition``; fails the test when there is none in time, and shows what threads do."""
    until = time.monotonic() + patience_s
    while time.monotonic() < until:
        began = time.monotonic()
        value = condition()
        if value:
            return value
        took = time.monotonic() - began
        time.sleep(min(MOST_S, max(LEAST_S, took / LOOKS - took)))
    raise AssertionError(f"not within {patience_s:.0f} s: {what}\n{_other_threads()}".rstrip())


def let_pass(seconds: float) -> None:
    """Let time pass where its passing is the claim; ``eventually`` is for everything else."""
    time.sleep(seconds)


def _other_threads() -> str:
    """Where each other thread of Python is, innermost frames last."""
    named = {thread.ident: thread.name for thread in threading.enumerate()}
    others = [(ident, frame) for ident, frame in sys._current_frames().items() if ident != threading.get_ident()]
    return "\n".join(f"{named.get(ident)}:\n{''.join(traceback.format_stack(frame, 8))}" for ident, frame in others)
