"""Gives every task its GPUs, and finds those that two tasks would share."""

from collections import defaultdict
from itertools import count, islice
from typing import Dict, Iterator, List, Sequence, Tuple

from cluster.errors import Problem
from cluster.spec.model import Gpus
from cluster.spec.slots import Clashes, Slot

ALL = "all"
SHARE = "share"
_Owners = Dict[str, Dict[int, Slot]]  # by machine and index


def assign_gpus(slots: Sequence[Slot]) -> List[Problem]:
    """Give every slot its GPUs, and return the problems.

    Lists go first. A slot that wants a number then gets the lowest indices that are left on its machine.
    """
    owners: _Owners = defaultdict(dict)
    clashes = Clashes()
    for slot in slots:
        slot.gpus = _as_written(slot)
        for index in slot.gpus if isinstance(slot.entry.gpus, list) else ():
            owner = owners[slot.machine].setdefault(int(index), slot)
            if owner is not slot:
                clashes.add(slot, owner, f"GPU {index} of {slot.host}")
    for slot in slots:
        if isinstance(slot.entry.gpus, int):
            slot.gpus = _first_left(slot.entry.gpus, owners[slot.machine], slot)
    hint = "give each its own, or a number of them: gpus: 1"
    return [
        *_twice_in_a_list(slots),
        *clashes.problems(("gpus",), "GPUs that no other task has", hint),
        *_all_and_more(slots),
    ]


def _as_written(slot: Slot) -> Gpus:
    written = slot.entry.gpus
    if isinstance(written, list):
        return tuple(written)
    if written == ALL:
        return ALL
    return SHARE if written is None and slot.entry.role != "ps" else ()


def _first_left(wanted: int, owners: Dict[int, Slot], slot: Slot) -> Tuple[int, ...]:
    free = tuple(islice((index for index in count() if index not in owners), wanted))
    owners.update(dict.fromkeys(free, slot))
    return free


def _twice_in_a_list(slots: Sequence[Slot]) -> Iterator[Problem]:
    for entry in {slot.entry.path: slot.entry for slot in slots}.values():
        listed = entry.gpus if isinstance(entry.gpus, list) else []
        for index in sorted({index for index in listed if listed.count(index) > 1}):
            yield entry.problem(("gpus",), "each GPU once", f"GPU {index} twice")


def _all_and_more(slots: Sequence[Slot]) -> Iterator[Problem]:
    """Yield problems for tasks that use GPUs of a host beside a task with ``all``.

    ``all`` leaves nothing to another task of the host, nor to a share of the rest.
    """
    users: Dict[str, List[Slot]] = defaultdict(list)
    for slot in slots:
        if slot.gpus != ():
            users[slot.machine].append(slot)
    clashes = Clashes()
    for on_host in users.values():
        greedy = next((slot for slot in on_host if slot.gpus == ALL), None)
        for slot in on_host:
            if greedy is not None and slot is not greedy:
                clashes.add(slot, greedy, f"GPUs of {slot.host}")
    return clashes.problems(("gpus",), "GPUs that no other task has", "write gpus: none, or a number of them for both")
