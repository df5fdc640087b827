"""What faults have met: the run's phase when a fault begins, and the fault before it."""

from collections import Counter
from typing import Iterator, List, Mapping, NamedTuple

from launch.agent.supervision.run_state import Phase
from tests.simulation.faults import KINDS, Fault
from tests.simulation.world import World

BEFORE_S = 30.0  # a fault that began earlier is none before another
NOTHING, NO_LEAD = "-", "no lead"
PHASES = [*(phase.value for phase in Phase), NO_LEAD]


class Meeting(NamedTuple):
    """A fault that began: in which phase, of which kind, and the kind of the fault before it."""

    phase: str
    kind: str
    before: str


def watch(world: World) -> List[Meeting]:
    """The meetings of a history that has not begun; the list grows as it happens."""
    met: List[Meeting] = []
    for fault in world.faults:  # before the world adds the fault, so this happens before it does
        world.agenda.add(fault.at, _note, world, fault, met)
    return met


def _note(world: World, fault: Fault, met: List[Meeting]) -> None:
    supervisor = world.supervisor()
    phase = NO_LEAD if supervisor is None else supervisor.state.phase.value
    earlier = world.faults[: world.faults.index(fault)]
    before = earlier[-1].kind if earlier and fault.at - earlier[-1].at <= BEFORE_S else NOTHING
    met.append(Meeting(phase, fault.kind, before))


def report(met: Mapping[Meeting, int]) -> Iterator[str]:
    """How much of all that could meet has, and what has not."""
    kinds = [*KINDS, *sorted({each.kind for each in met} - {*KINDS})]
    possible = len(PHASES) * len(kinds) * (len(kinds) + 1)
    yield f"{len(met)} of {possible} (phase, fault, fault before) have met, in {sum(met.values())} faults"
    pairs = Counter((each.phase, each.kind) for each in met)
    yield f"{len(pairs)} of {len(PHASES) * len(kinds)} (phase, fault) have met; never:"
    for phase in PHASES:
        missing = [kind for kind in kinds if (phase, kind) not in pairs]
        if missing:
            yield f"    {phase}: {', '.join(missing)}"
