"""Trying again: how often, how long, and after which failures.

The pauses have full jitter, evenly between nothing and a bound that doubles: many who were
turned away together do not come back together.
"""

import random
import time
from dataclasses import dataclass
from typing import Callable, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Backoff:
    """No attempt begins later than ``total_s`` after the first one."""

    total_s: float
    first_s: float = 0.25
    longest_s: float = 4.0

    def pause_s(self, failures: int, chance: float) -> float:
        """Seconds to wait after so many failures; ``chance`` is evenly from 0 to 1."""
        return chance * min(self.longest_s, self.first_s * 2.0 ** (failures - 1))


def persist(
    attempt: Callable[[], T],
    passes: Callable[[Exception], bool],
    backoff: Backoff,
    wait: Callable[[float], bool],
    chance: Callable[[], float] = random.random,
    clock: Callable[[], float] = time.monotonic,
) -> T:
    """What ``attempt`` returns, tried again after each failure that ``passes`` by itself.

    ``wait`` waits so many seconds, and says whether to give up meanwhile.

    Raises:
      Exception: the last one of ``attempt``.
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
