"""Waiting for what must come: tests sleep for nothing else."""

import time
from typing import Any, Callable

PATIENCE_S = 120.0  # more than a busy machine needs


def eventually(what: str, condition: Callable[[], Any], patience_s: float = PATIENCE_S) -> Any:
    """The first true value of ``condition``; fails the test when there is none in time."""
    until = time.monotonic() + patience_s
    while time.monotonic() < until:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"not within {patience_s:.0f} s: {what}")
