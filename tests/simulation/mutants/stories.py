"""The histories that a hunt runs, in their order: each fault of the seeds alone, and each seed with all of its faults.

Of one fault alone it is known what it costs, so fewer mistakes hide. Several meet what one alone does not.
"""

from itertools import zip_longest
from typing import Dict, Iterable, List, NamedTuple, Optional

from tests.simulation.costs import cost
from tests.simulation.faults import Fault
from tests.simulation.world import World

FIRST_S, SOON_S, END_S = 2.0, 70.0, 130.0  # the first fault, the time of all, and the operator's end


class Story(NamedTuple):
    """A history by its seed; ``alone`` is the number of the seed's fault that happens by itself, None for all.

    With ``soon``, all faults happen in the first minute, and an operator ends the run after two.
    """

    seed: int
    alone: Optional[int] = None
    soon: bool = False

    def __str__(self) -> str:
        return f"seed {self.seed}" if self.alone is None else f"fault {self.alone} of seed {self.seed}"

    @property
    def faults(self) -> Optional[List[Fault]]:
        """Return the faults in the place of the seed's; None for its own."""
        if self.soon:
            own = [fault._replace(at=FIRST_S + fault.at % SOON_S) for fault in World(self.seed).faults]
            return sorted([*own, Fault(END_S, "stop")])
        return None if self.alone is None else [World(self.seed).faults[self.alone]]


def stories(seeds: Iterable[int]) -> List[Story]:
    """Return the histories of some seeds: one with a fault alone and one with several, in turn, kind after kind."""
    singles: Dict[str, List[Story]] = {}
    wholes = [Story(seed) for seed in seeds]
    for whole in wholes:
        for number, fault in enumerate(World(whole.seed).faults):
            if cost(World(whole.seed, [fault])) is not None:
                singles.setdefault(fault.kind, []).append(Story(whole.seed, number))
    kinds = zip_longest(*singles.values())
    in_turn = zip_longest((each for row in kinds for each in row if each is not None), wholes)
    return [each for pair in in_turn for each in pair if each is not None]
