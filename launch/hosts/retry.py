"""Retry an attempt whose failure may be temporary.

The pauses between attempts have full jitter: each pause is random, uniform between zero and a bound that doubles. So
clients that were refused at the same time do not return at the same time.
"""

import random
import time
from dataclasses import dataclass
from typing import Callable, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Backoff:
    """The pauses between attempts; no attempt begins more than ``total_s`` seconds after the first attempt."""

    total_s: float
    first_s: float = 0.25
    longest_s: float = 4.0

    def pause_s(self, failures: int, chance: float) -> float:
        """Return the seconds to wait after ``failures`` failures; ``chance`` is uniform from 0 to 1."""
        return chance * min(self.longest_s, self.first_s * 2.0 ** (failures - 1))


def persist(
    attempt: Callable[[], T],
    passes: Callable[[Exception], bool],
    backoff: Backoff,
    wait: Callable[[float], bool],
    chance: Callable[[], float] = random.random,
    clock: Callable[[], float] = time.monotonic,
) -> T:
    """Return the result of ``attempt``; try again after each failure for which ``passes`` returns True.

    ``wait(seconds)`` waits that long, and returns True if ``persist`` must give up.

    Raises:
      Exception: the last exception of ``attempt``.
    """
    began, failures = clock(), 0
    while True:
        try:
            return attempt()
        except Exception as error:
            failures += 1
            pause_s = backoff.pause_s(failures, chance())
            late = clock() + pause_s > began + backoff.total_s
            if not passes(error) or late or wait(pause_s):
                raise
