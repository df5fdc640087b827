"""Find the slow workers of a synchronous run, and their cost to the others.

All workers of a synchronous step take equally long: a worker that is done early waits. So the step
time shows nothing. The time that a worker needs for itself, until it has given its gradient, shows
which workers are slow. A worker is a *straggler* when it needs more than ``SLOW`` times what the
middle one needs. Every worker waits for the applying of the gradients, and for the way there and
back. So only the waiting beyond that of the slowest worker is due to the slowest worker.
"""

from statistics import median_low
from typing import Mapping, NamedTuple, Optional, Tuple

from launch.agent.supervision.record import Pace

SLOW = 1.25
LEAST_MS = 2.0  # below, it is the noise of the machine


class Judgement(NamedTuple):
    """The stragglers of a run, and the waiting that they cause.

    ``stragglers`` has names, the slowest first. ``waiting_share`` is the part of a step, from 0 to 1, that the other
    workers spend waiting for the slowest worker, in the mean. ``waiting_share`` is None with fewer than two workers
    that are known.
    """

    stragglers: Tuple[str, ...]
    waiting_share: Optional[float]


def judge(paces: Mapping[str, Pace]) -> Judgement:
    """Compare the workers of one run: {task: its pace}."""
    if len(paces) < 2:
        return Judgement((), None)
    middle_ms = median_low(pace.own_ms for pace in paces.values())
    limit_ms = max(SLOW * middle_ms, middle_ms + LEAST_MS)
    slow = sorted((name for name in paces if paces[name].own_ms > limit_ms), key=lambda name: -paces[name].own_ms)
    due_ms = min(pace.wait_ms for pace in paces.values())
    shares = [(p.wait_ms - due_ms) / p.step_ms for name, p in paces.items() if name not in slow and p.step_ms > 0]
    return Judgement(tuple(slow), sum(shares) / len(shares) if shares else 0.0)
