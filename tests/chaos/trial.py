"""A trial out of its seed: how the run is set, and which faults it meets. The same seed is always the same trial."""

import random
from typing import Collection, List, NamedTuple, Tuple

from tests.chaos.faults import CHECKPOINT, EVERY, KINDS, START, STEP, TEARDOWN, Fault

PAUSE_MS = 50  # what a step takes at least
STEPS = {"sync": 140, "backup": 200, "async": 300}  # asynchronous workers count their steps together
LONGER = 4  # times as many, where what follows from a fault takes its time
TWO_FAULTS = 0.2  # of the trials
CHECKPOINT_S = 2
ROWS = {"small": 1, "sliced": 2**16}  # of the job's variables; 1.25 MiB are cut into slices, on two ps
OPTIMIZERS = ("sgd", "adam")  # in turns; Adam with weight decay
RESTART_MAX = 3


class Trial(NamedTuple):
    """One run and what it meets. ``mode``: sync, async or backup (synchronous with a backup worker)."""

    seed: int
    mode: str
    elastic: bool
    detached: bool
    faults: Tuple[Fault, ...]
    size: str = "small"
    optimizer: str = "sgd"

    @property
    def steps(self) -> int:
        """The global step to stop at."""
        return STEPS[self.mode] * (LONGER if any(self.mode in KINDS[fault.kind].long for fault in self.faults) else 1)

    @property
    def kind(self) -> str:
        """Under which the table counts it."""
        return " + ".join(fault.kind for fault in self.faults)

    @property
    def label(self) -> str:
        """As ``kind``, with where it happens."""
        return " + ".join(f"{fault.kind} {fault.target}".strip() for fault in self.faults)

    def __str__(self) -> str:
        how = [self.mode, *(["elastic"] if self.elastic else []), *(["detached"] if self.detached else [])]
        how += [self.size, self.optimizer]
        return f"seed {self.seed}: {', '.join(how)}, to step {self.steps}: {'; and '.join(map(str, self.faults))}"


def plan_trial(seed: int, kinds: Collection[str] = EVERY) -> Trial:
    """The trial of a seed.

    Args:
      kinds: those of ``KINDS`` that may happen. With another choice a seed may be another trial.
    """
    dice = random.Random(f"chaos {seed}")
    name = dice.choice(sorted(kinds))
    kind = KINDS[name]
    elastic, detached = dice.choice(kind.elastic), dice.choice(kind.detached)
    mode = dice.choice(["sync", "sync", "async"] if elastic else ["sync", "sync", "async", "backup"])
    faults = [_fault(name, mode, dice)]
    beside = sorted(other for other in kinds if KINDS[other].pairs)
    if kind.pairs and dice.random() < TWO_FAULTS:
        faults.append(_fault(dice.choice(beside), mode, dice))
    size, optimizer = dice.choice(sorted(ROWS)), OPTIMIZERS[seed % len(OPTIMIZERS)]
    return Trial(seed, mode, elastic, detached, tuple(_in_order(faults)), size, optimizer)


def _fault(name: str, mode: str, dice: random.Random) -> Fault:
    kind, steps = KINDS[name], STEPS[mode]
    # More than half is left: what is seen of a run is seconds old, the next checkpoint may be as far, and then training
    # is to be seen to go on.
    return Fault(name, dice.choice(kind.targets), dice.choice(kind.moments), dice.randint(2, steps * 2 // 5))


def _in_order(faults: List[Fault]) -> List[Fault]:
    """By moment, so that one does not wait for what comes before another."""
    order = {START: 0, STEP: 1, CHECKPOINT: 1, TEARDOWN: 2}
    return sorted(faults, key=lambda fault: (order[fault.moment], fault.step))
