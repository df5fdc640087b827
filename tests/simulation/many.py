"""Many histories, in several processes: what each came to, and the sum of all."""

import gc
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Counter as Counts
from typing import Iterable, Iterator, List, NamedTuple, Optional

from tests.simulation.lines import Lines
from tests.simulation.met import Meeting, watch
from tests.simulation.verdict import verdict
from tests.simulation.world import World

LONG_S = 600.0


class Outcome(NamedTuple):
    """What a history came to, as it is sent between processes."""

    seed: int
    why: Optional[str]
    seconds: float
    host_s: float
    met: List[Meeting]
    lines: Lines


@dataclass
class Sum:
    """What many histories came to; ``long`` ones took ten simulated minutes, with two faults or more."""

    histories: int = 0
    long: int = 0
    host_s: float = 0.0
    broken: List[Outcome] = field(default_factory=list)
    met: Counts[Meeting] = field(default_factory=Counter)
    lines: Lines = field(default_factory=Lines)
    began: float = field(default_factory=time.monotonic)

    def add(self, outcome: Outcome) -> None:
        """Count a history."""
        self.histories += 1
        self.long += outcome.seconds >= LONG_S and len(outcome.met) > 1
        self.host_s += outcome.host_s
        self.met.update(outcome.met)
        self.lines.add(outcome.lines)
        if outcome.why is not None:
            self.broken.append(outcome)

    def __str__(self) -> str:
        took_s = time.monotonic() - self.began
        return (
            f"{self.histories} histories, {self.host_s / 3600:.1f} host-hours in {took_s:.0f} s, "
            f"{self.long} of ten minutes with several faults: {len(self.broken)} violations"
        )


def outcomes(seeds: Iterable[int], processes: int, with_lines: bool = False) -> Iterator[Outcome]:
    """What each seed comes to, in the order of the seeds."""
    live = partial(lived, with_lines=with_lines)
    with ExitStack() as stack:
        if processes < 2:
            yield from map(live, seeds)
        else:
            yield from stack.enter_context(ProcessPoolExecutor(processes)).map(live, seeds)


def lived(seed: int, with_lines: bool = False) -> Outcome:
    """What a seed comes to."""
    world, lines = World(seed), Lines()
    met = watch(world)
    gc.collect()
    gc.disable()  # a history leaves little that only the collector finds, and the collector takes a tenth of its time
    try:
        if with_lines:
            with lines.traced():
                why = verdict(world)
        else:
            why = verdict(world)
    finally:
        gc.enable()
    return Outcome(seed, why, world.agenda.now, world.agenda.now * len(world.machines), met, lines)
