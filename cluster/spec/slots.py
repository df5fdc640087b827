"""A slot is one task of an entry, before and while it is given its port and its GPUs."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Dict, Iterator, List, Sequence, Tuple

from cluster.errors import Problem
from cluster.spec.entries import Entry
from cluster.spec.model import Gpus, is_local
from cluster.spec.place import Path

THIS_MACHINE = "localhost"


@dataclass(eq=False)
class Slot:
    """One task. ``port`` and ``gpus`` are valid after ``assign_ports`` and ``assign_gpus``."""

    entry: Entry
    index: int  # of the task in its role
    host: str
    address: str
    number: int  # among the entry's tasks on this host
    port: int = 0
    gpus: Gpus = ()

    @property
    def name(self) -> str:
        """``worker:1``"""
        return f"{self.entry.role}:{self.index}"

    @property
    def machine(self) -> str:
        """The host, with one name for this machine."""
        return machine_of(self.host)


def machine_of(host: str) -> str:
    """The host's name, one and the same for all names of this machine."""
    return THIS_MACHINE if is_local(host) else host


def slots_of(entries: Sequence[Entry]) -> List[Slot]:
    """Every task of ``entries``, in their order; an entry's tasks on one host stand together."""
    sizes: Dict[str, int] = defaultdict(int)
    slots = []
    for entry in entries:
        for host, address in zip(entry.hosts, entry.addresses):
            for number in range(entry.count):
                slots.append(Slot(entry, sizes[entry.role], host, address, number))
                sizes[entry.role] += 1
    return slots


class Clashes:
    """The addresses or GPUs that two tasks would share.

    Two ranges that overlap are one mistake, however long the ranges are.
    """

    def __init__(self) -> None:
        self._found: Dict[Tuple[Path, Path], List[Tuple[Slot, Slot, str]]] = defaultdict(list)

    def add(self, slot: Slot, owner: Slot, what: str) -> None:
        """Record that ``slot`` wants ``what``, which ``owner`` has."""
        self._found[slot.entry.path, owner.entry.path].append((slot, owner, what))

    def problems(self, below: Path, expected: str, hint: str) -> Iterator[Problem]:
        """Yield one problem for every two entries that clash, at ``below`` in the later one."""
        for clashes in self._found.values():
            slot, owner, what = clashes[0]
            giver = "the same entry" if owner.entry is slot.entry else str(owner.entry.place)
            more = f" (and {len(clashes) - 1} more)" if len(clashes) > 1 else ""
            found = f"{what} for {slot.name}, which {giver} gives to {owner.name}{more}"
            yield slot.entry.problem(below, expected, found, hint)
