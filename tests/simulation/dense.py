"""The faults of short runs with many faults, all of them early: dense seeds."""

from random import Random
from typing import List, Mapping

from tests.simulation import disk_faults
from tests.simulation.faults import Fault, drawn
from tests.simulation.operators import further_faults
from tests.simulation.runs import FURTHER_FROM

HEALS_S = 60.0  # for which the run trains on after the last fault
_AFTER_S = 20.0  # until then what comes as training ends
_ENDS = ("stop", "twice", "kill", "launcher")


def dense(seed: int, hosts: List[str], tasks: Mapping[str, str]) -> List[Fault]:
    """Return the faults of a dense seed; ``tasks`` has the host of each task.

    What ends a run comes late, since no fault comes after it.
    """
    random, found = Random(seed + 18), []  # type: Random, List[Fault]
    until, number = random.choice([30.0, 60.0, 90.0]), random.choice([2, 3, 4, 5, 7, 10])
    number = number if seed < FURTHER_FROM else number // 2  # beside those of launchers, keepers and disks
    while len(found) < number:
        found += drawn(random, hosts, tasks, until)
    found = [_late(fault, until, random) if fault.kind in _ENDS else fault for fault in found]
    return sorted(_sooner(fault, until, random) for fault in [*found, *further_faults(seed, hosts, until)])


def _sooner(fault: Fault, until: float, random: Random) -> Fault:
    """Return a fault that comes early, and is over soon."""
    is_number = fault.kind in disk_faults.KINDS
    seconds = fault.seconds if is_number else min(fault.seconds, random.uniform(8.0, 35.0))
    found = fault if fault.at <= until + _AFTER_S else _late(fault, until, random)
    return found._replace(seconds=seconds)


def _late(fault: Fault, until: float, random: Random) -> Fault:
    return fault._replace(at=random.uniform(0.7 * until, until + _AFTER_S))
