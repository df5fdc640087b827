"""Short histories, for one fault or two: training ends soon after them, and not after ten minutes."""

from tests.simulation.faults import LONGEST_S, Fault
from tests.simulation.training import STEP_S
from tests.simulation.world import World

HEALS_S = 90.0  # within which a run of the product goes on after any one fault


def short(seed: int, *faults: Fault) -> World:
    """Return a world whose training takes so many steps as make it end a while after the last fault."""
    ends = [fault.at + min(fault.seconds, LONGEST_S) for fault in faults]
    return World(seed, faults, steps=int((max(ends, default=0.0) + HEALS_S) / STEP_S))
