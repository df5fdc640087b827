"""The faults of a long run, out of a seed: one for every minute, of the kinds that a run survives."""

import random
from typing import Dict, List

from tests.chaos.faults import KINDS, STEP, Fault

# All that may come beside another fault, but for a clock: its jumps need a Python of their own.
SURVIVED = sorted(name for name, kind in KINDS.items() if kind.pairs and name != "clock")
APART = 3  # minutes between two deaths of a host's agent: the sixth within ten minutes ends a run


def drawn(minutes: int, seed: int) -> List[Fault]:
    """Return a fault for every minute."""
    dice, killed = random.Random(f"soak {seed}"), {}  # type: random.Random, Dict[str, int]
    return [_one(minute, dice, killed) for minute in range(minutes)]


def _one(minute: int, dice: random.Random, killed: Dict[str, int]) -> Fault:
    while True:
        kind = dice.choice(SURVIVED)
        target = dice.choice(KINDS[kind].targets)
        if kind != "agent" or minute - killed.get(target, -APART) >= APART:
            break
    if kind == "agent":
        killed[target] = minute
    return Fault(kind, target, STEP, 0)
