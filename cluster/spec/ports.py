"""Gives every task its port, and finds the addresses that two tasks would share."""

from collections import defaultdict
from typing import Dict, Iterator, List, Sequence, Set, Tuple

from cluster.errors import Problem
from cluster.spec.slots import Clashes, Slot, machine_of

FIRST_PORT = 2222
LAST_PORT = 65535


def assign_ports(slots: Sequence[Slot]) -> List[Problem]:
    """Gives every slot its entry's port, or else the next one from 2222 on that is free on its host."""
    taken: Dict[str, Set[int]] = defaultdict(set)
    following: Dict[str, int] = defaultdict(lambda: FIRST_PORT)
    for slot in slots:
        if slot.entry.port is not None:
            slot.port = slot.entry.port + slot.number
            taken[slot.machine].add(slot.port)
    for slot in slots:
        if slot.entry.port is None:
            slot.port = _free(following[slot.machine], taken[slot.machine])
            following[slot.machine] = slot.port + 1
    return [*_beyond_the_last(slots), *_shared_addresses(slots)]


def _free(port: int, taken: Set[int]) -> int:
    while port in taken:
        port += 1
    return port


def _beyond_the_last(slots: Sequence[Slot]) -> Iterator[Problem]:
    for slot in {slot.entry.path: slot for slot in slots if slot.port > LAST_PORT}.values():
        yield slot.entry.problem(
            (), f"ports up to {LAST_PORT}", f"port {slot.port} for {slot.name}", "lower port or count"
        )


def _shared_addresses(slots: Sequence[Slot]) -> Iterator[Problem]:
    owners: Dict[Tuple[str, int], Slot] = {}
    clashes = Clashes()
    for slot in slots:
        # A task listens on its own host, wherever the others find it.
        for name in {slot.machine, machine_of(slot.address)}:
            owner = owners.setdefault((name, slot.port), slot)
            if owner is not slot:
                clashes.add(slot, owner, f"{name}:{slot.port}")
    return clashes.problems((), "an address that no other task has", "leave the port out, or give another one")
