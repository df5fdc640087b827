"""Faults of disks: a change of an agent's files that fails, or in which power or the agent ends; a damaged record.

``seconds`` of a fault is a number: that of the change, or of the damage.
"""

import errno
import os
from contextlib import suppress
from random import Random
from typing import Any, Callable, Dict, List

from tests.simulation.damage import MANNERS, damaged
from tests.simulation.faults import BEGIN, Fault
from tests.simulation.loops import Gone
from tests.simulation.machines import OFF_S, UP_S, Machine

FAILING = {"write full": errno.ENOSPC, "write fails": errno.EIO, "write refused": errno.EROFS}
ENDING = ("write unpowered", "write killed")
RECORDS = ("damaged", "damaged off")
KINDS: Dict[str, int] = {**dict.fromkeys(FAILING, 2), **dict.fromkeys((*ENDING, *RECORDS), 4)}
OFF_FOR_S = 20.0


def drawn(seed: int, hosts: List[str], until: float) -> List[Fault]:
    """Return the faults of disks of a seed."""
    random = Random(seed + 4)
    found: List[Fault] = []
    for _ in range(random.choice([0, 1, 1, 2, 3])):
        kind = random.choices(list(KINDS), list(KINDS.values()))[0]
        at = random.uniform(*random.choice([(0.0, until), (0.0, until), (0.0, 15.0), (590.0, 640.0)]))
        host = random.choice([hosts[0], random.choice(hosts)])
        found.append(Fault(at, kind, host, float(random.randrange(120 if kind in RECORDS else 40))))
    return found


def _fails(number: int) -> Callable[[Fault, Any], None]:
    """One change fails."""

    def begin(fault: Fault, world: Any) -> None:
        def happen() -> None:
            world.note(fault.what, f"a change of a file fails: {os.strerror(number)}")
            raise OSError(number, os.strerror(number))

        _let(happen, fault, world)

    return begin


def _ends(end: Callable[[Machine], None]) -> Callable[[Fault, Any], None]:
    """In one change, the agent or its machine ends."""

    def begin(fault: Fault, world: Any) -> None:
        def happen() -> None:
            world.healed_at = max(world.healed_at, world.agenda.now + OFF_FOR_S + OFF_S + UP_S)
            end(world.machines[fault.what])
            raise Gone

        _let(happen, fault, world)

    return begin


def _let(happen: Callable[[], None], fault: Fault, world: Any) -> None:
    disk = world.machines[fault.what].disk
    disk.due[disk.changes + 1 + int(fault.seconds)] = happen


def _power(machine: Machine) -> None:
    machine.lose_power()
    machine.world.agenda.after(OFF_FOR_S, machine.boot)


def records(machine: Machine) -> List[str]:
    """Return the records that the agents of a host have written by now."""
    found = machine.disk.names(f"{machine.folder.own}/[!.]*")
    return sorted(each for each in found if not each.startswith(f"{machine.folder.replica}/"))


def _damaged(end: Callable[[Machine], None]) -> Callable[[Fault, Any], None]:
    """An agent or its machine ends, and one record of the host is damaged before the next agent reads it."""

    def begin(fault: Fault, world: Any) -> None:
        machine = world.machines[fault.what]
        if not machine.has_agent:
            return
        end(machine)
        world.healed_at = max(world.healed_at, world.agenda.now + OFF_FOR_S + OFF_S + UP_S)
        number, paths, manners = int(fault.seconds), records(machine), list(MANNERS)
        path, manner = paths[number % len(paths)], manners[number // len(paths) % len(manners)]
        data = damaged(machine.disk.read(path), machine.disk.first(path), manner, Random(number))
        with suppress(OSError):  # a full disk takes no damage of this kind
            machine.disk.write(path, data, durable=True)
            world.damaged_at[os.path.basename(path)] = world.agenda.now
            world.note(fault.what, f"{os.path.basename(path)} is {manner}")

    return begin


BEGIN.update({kind: _fails(number) for kind, number in FAILING.items()})
BEGIN.update({"write unpowered": _ends(_power), "write killed": _ends(Machine.kill_agent)})
BEGIN.update({"damaged": _damaged(Machine.kill_agent), "damaged off": _damaged(_power)})
