"""The slots of a cluster: a slot is one task of an entry, to which a port and GPUs are assigned.

Two tasks that request the same address or GPU clash.
"""

from collections import defaultdict
from dataclasses import dataclass
from itertools import count, islice
from typing import Dict, Iterator, List, Sequence, Set, Tuple

from cluster.errors import Problem
from cluster.spec.entries import Entry
from cluster.spec.model import Gpus, is_local
from cluster.spec.place import Path

THIS_MACHINE = "localhost"


@dataclass(eq=False)
class Slot:
    """One task. ``port`` and ``gpus`` are valid after ``assign_ports`` and ``assign_gpus``."""

    entry: Entry
    index: int  # of the task among the tasks of its role
    host: str
    address: str
    number: int  # among the entry's tasks on this host
    port: int = 0
    gpus: Gpus = ()

    @property
    def name(self) -> str:
        """Return the name of the task, such as ``worker:1``."""
        return f"{self.entry.role}:{self.index}"

    @property
    def machine(self) -> str:
        """Return the name of the task's host; ``localhost`` replaces every name of this machine."""
        return machine_of(self.host)


def machine_of(host: str) -> str:
    """Return ``host``, or ``localhost`` if it is any name of this machine."""
    return THIS_MACHINE if is_local(host) else host


def slots_of(entries: Sequence[Entry]) -> List[Slot]:
    """Return a slot for every task of ``entries``, in the order of the entries.

    The slots of one entry on one host are adjacent.
    """
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

    The overlap of two ranges counts as one mistake, whatever the length of the ranges.
    """

    def __init__(self) -> None:
        self._found: Dict[Tuple[Path, Path], List[Tuple[Slot, Slot, str]]] = defaultdict(list)

    def add(self, slot: Slot, owner: Slot, what: str) -> None:
        """Record that ``slot`` requests ``what``, which belongs to ``owner``."""
        self._found[slot.entry.path, owner.entry.path].append((slot, owner, what))

    def problems(self, below: Path, expected: str, hint: str) -> Iterator[Problem]:
        """Yield one problem for each pair of entries that clash, at the path ``below`` inside the later entry."""
        for clashes in self._found.values():
            slot, owner, what = clashes[0]
            giver = "the same entry" if owner.entry is slot.entry else str(owner.entry.place)
            more = f" (and {len(clashes) - 1} more)" if len(clashes) > 1 else ""
            found = f"{what} for {slot.name}, which {giver} gives to {owner.name}{more}"
            yield slot.entry.problem(below, expected, found, hint)


FIRST_PORT = 2222
LAST_PORT = 65535


def assign_ports(slots: Sequence[Slot]) -> List[Problem]:
    """Give every slot its port, and return the problems.

    If an entry has a port, its slots on a host get that port and the ports above. Any other slot gets the next free
    port of its host, from 2222 upwards.
    """
    taken: Dict[str, Set[int]] = defaultdict(set)
    following: Dict[str, int] = defaultdict(lambda: FIRST_PORT)
    for slot in slots:
        if slot.entry.port is not None:
            slot.port = slot.entry.port + slot.number
            taken[slot.machine].add(slot.port)
    for slot in slots:
        if slot.entry.port is None:
            slot.port = _free_port(following[slot.machine], taken[slot.machine])
            following[slot.machine] = slot.port + 1
    return [*_ports_beyond_the_last(slots), *_shared_addresses(slots)]


def _free_port(port: int, taken: Set[int]) -> int:
    while port in taken:
        port += 1
    return port


def _ports_beyond_the_last(slots: Sequence[Slot]) -> Iterator[Problem]:
    for slot in {slot.entry.path: slot for slot in slots if slot.port > LAST_PORT}.values():
        yield slot.entry.problem(
            (), f"ports up to {LAST_PORT}", f"port {slot.port} for {slot.name}", "lower port or count"
        )


def _shared_addresses(slots: Sequence[Slot]) -> Iterator[Problem]:
    owners: Dict[Tuple[str, int], Slot] = {}
    clashes = Clashes()
    for slot in slots:
        # A task listens on its own host, whatever address the other tasks connect to.
        for name in {slot.machine, machine_of(slot.address)}:
            owner = owners.setdefault((name, slot.port), slot)
            if owner is not slot:
                clashes.add(slot, owner, f"{name}:{slot.port}")
    return clashes.problems((), "an address that no other task has", "leave the port out, or give another one")


ALL_GPUS = "all"
SHARE_GPUS = "share"
_Owners = Dict[str, Dict[int, Slot]]  # by machine and index


def assign_gpus(slots: Sequence[Slot]) -> List[Problem]:
    """Give every slot its GPUs, and return the problems.

    Lists of indices are assigned first. A slot with a number of GPUs then receives the lowest free indices of its
    machine.
    """
    owners: _Owners = defaultdict(dict)
    clashes = Clashes()
    for slot in slots:
        slot.gpus = _gpus_as_written(slot)
        for index in slot.gpus if isinstance(slot.entry.gpus, list) else ():
            owner = owners[slot.machine].setdefault(int(index), slot)
            if owner is not slot:
                clashes.add(slot, owner, f"GPU {index} of {slot.host}")
    for slot in slots:
        if isinstance(slot.entry.gpus, int):
            slot.gpus = _first_gpus_left(slot.entry.gpus, owners[slot.machine], slot)
    hint = "give each task its own GPUs, or a number of GPUs: gpus: 1"
    return [
        *_gpus_twice_in_a_list(slots),
        *clashes.problems(("gpus",), "GPUs that no other task has", hint),
        *_beside_all_gpus(slots),
    ]


def _gpus_as_written(slot: Slot) -> Gpus:
    written = slot.entry.gpus
    if isinstance(written, list):
        return tuple(written)
    if written == ALL_GPUS:
        return ALL_GPUS
    return SHARE_GPUS if written is None and slot.entry.role != "ps" else ()


def _first_gpus_left(wanted: int, owners: Dict[int, Slot], slot: Slot) -> Tuple[int, ...]:
    free = tuple(islice((index for index in count() if index not in owners), wanted))
    owners.update(dict.fromkeys(free, slot))
    return free


def _gpus_twice_in_a_list(slots: Sequence[Slot]) -> Iterator[Problem]:
    for entry in {slot.entry.path: slot.entry for slot in slots}.values():
        listed = entry.gpus if isinstance(entry.gpus, list) else []
        for index in sorted({index for index in listed if listed.count(index) > 1}):
            yield entry.problem(("gpus",), "each GPU once", f"GPU {index} twice")


def _beside_all_gpus(slots: Sequence[Slot]) -> Iterator[Problem]:
    """Yield problems for tasks that use GPUs of a host on which another task has ``all``.

    ``all`` leaves no GPU for another task of the host, nor for a share of the rest.
    """
    users: Dict[str, List[Slot]] = defaultdict(list)
    for slot in slots:
        if slot.gpus != ():
            users[slot.machine].append(slot)
    clashes = Clashes()
    for on_host in users.values():
        greedy = next((slot for slot in on_host if slot.gpus == ALL_GPUS), None)
        for slot in on_host:
            if greedy is not None and slot is not greedy:
                clashes.add(slot, greedy, f"GPUs of {slot.host}")
    return clashes.problems(("gpus",), "GPUs that no other task has", "write gpus: none for one, or a number for both")
