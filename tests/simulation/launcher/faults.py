"""What happens to launchers: signals, stops, suspensions, cuts of their network, and other terminals, by the seed."""

import errno
import signal
from functools import partial
from random import Random
from typing import Any, Callable, Dict, List, Set, Tuple

from tests.simulation.faults import LONGEST_S, Fault
from tests.simulation.launcher.code import damage
from tests.simulation.runs import has_failover

TERMINAL, OTHER = "terminal", "other"  # machines of launchers
KINDS: Dict[str, int] = {
    "ctrl-c": 3, "ctrl-c twice": 2, "launcher": 2, "ctrl-z": 3, "stopped launcher": 3, "laptop sleeps": 3,
    "laptop off": 2, "line": 5, "line in": 4, "line out": 4, "lines": 4, "half-open": 4, "watch": 5,
    "another down": 2,
}  # fmt: skip
UNPRINTED = {"full stdout": errno.ENOSPC, "closed stdout": errno.EBADF, "unread stdout": errno.EAGAIN}
OF_VERBS_SHARE, RESUMED_SHARE, LOST_SHARE = 0.2, 0.3, 0.9  # of seeds
_LOSES = ("gone", "gone", "power", "cut", "cut out", "line", "line in", "sleep")  # of the chief's host
_OF_HOSTS = ("line", "line in", "line out", "half-open")


def drawn(seed: int, hosts: List[str], until: float) -> List[Fault]:
    """Return what happens to the launchers of a seed."""
    random = Random(seed + 5)
    found: List[Fault] = []
    for _ in range(random.choice([0, 1, 1, 2, 3])):
        kind = random.choices(list(KINDS), list(KINDS.values()))[0]
        seconds = random.choice([0.5, 3.0, 9.0, 14.0, 20.0, 40.0, LONGEST_S]) * random.uniform(0.8, 1.2)
        at = random.uniform(*random.choice([(0.5, 3.0), (1.0, 12.0), (0.0, until), (0.0, until), (590.0, 625.0)]))
        if found and random.random() < 0.4:  # soon after the one before
            at = found[-1].at + random.choice([0.0, 1.0, 5.0, 16.0, 30.0]) * random.uniform(0.9, 1.1)
        found.append(Fault(at, kind, random.choice(hosts) if kind in _OF_HOSTS else "", seconds))
    random = Random(seed + 6)
    if random.random() < OF_VERBS_SHARE:
        at = random.uniform(*random.choice([(0.5, 3.0), (0.0, until)]))
        found.append(Fault(at, random.choice([*UNPRINTED, "damaged code"]), random.choice(hosts)))
    random = Random(seed + 7)
    return sorted([*found, *(_lost if has_failover(seed) else _resumed)(random, hosts, until)])


def _resumed(random: Random, hosts: List[str], until: float) -> List[Fault]:
    """Return what ends a run, perhaps, and lets another one resume it."""
    if random.random() > RESUMED_SHARE:
        return []
    at, kind = (
        random.uniform(20.0, min(200.0, until)),
        random.choice(["stop", "stop", "launcher", "power", "agent", "twice", ""]),
    )
    host = random.choice([hosts[0], random.choice(hosts)]) if kind in ("power", "agent") else ""
    found = [Fault(at, kind, host, random.choice([5.0, 30.0]))] if kind else []
    if random.random() < 0.4:
        found.append(Fault(at + random.uniform(0.5, 10.0), "damaged checkpoint", hosts[0]))
    return [*found, Fault(at + random.uniform(1.0, 40.0), "resume")]


def _lost(random: Random, hosts: List[str], until: float) -> List[Fault]:
    """Return what lets a launcher lose the chief's host, and perhaps what comes beside."""
    if random.random() > LOST_SHARE:
        return []
    at, kind = random.uniform(*random.choice([(2.0, 20.0), (20.0, min(200.0, until))])), random.choice(_LOSES)
    seconds = random.choice([14.0, 20.0, 30.0, 50.0, LONGEST_S]) * random.uniform(0.8, 1.2)
    found = [Fault(at, kind, hosts[0], seconds)]
    for _ in range(random.choice([0, 0, 1, 2])):
        later = at + random.choice([-8.0, 3.0, 15.0, 20.0, 24.0, 40.0, 70.0]) * random.uniform(0.9, 1.1)
        kind, host = (
            random.choice([*_LOSES, "agent", "slow", "busy", "ctrl-c", "another down", "stubborn"]),
            random.choice(hosts[:3]),
        )
        what = "worker:0" if kind == "stubborn" else host
        found.append(Fault(max(0.0, later), kind, "" if kind in ("ctrl-c", "another down") else what, seconds))
    return found


def begin(fault: Fault, world: Any) -> Any:
    """Let a fault of the launchers begin; return what ends it."""
    return _BEGIN[fault.kind](fault, world)


Pairs = Set[Tuple[str, str]]


def _line(outward: bool, inward: bool, every: bool = False) -> Callable[[Fault, Any], Any]:
    """Cut the launcher's machine from a host, or from all."""

    def begin(fault: Fault, world: Any) -> Any:
        hosts = list(world.machines) if every else [fault.what]
        pairs: Pairs = {(TERMINAL, host) for host in hosts if outward} | {(host, TERMINAL) for host in hosts if inward}
        added = pairs - world.network.cut
        world.network.cut |= added

        def heal() -> None:
            world.network.cut -= added

        return heal

    return begin


def _signals(*numbers: int) -> Callable[[Fault, Any], Any]:
    def begin(fault: Fault, world: Any) -> None:
        for index, number in enumerate(numbers):
            world.agenda.after(index * min(fault.seconds, LONGEST_S), partial(_signal, world, number))

    return begin


def _signal(world: Any, number: int) -> None:
    if world.operators.up is not None:
        world.note(TERMINAL, signal.Signals(number).name)
        world.operators.up.take(number)


def _off(fault: Fault, world: Any) -> None:
    """The launcher's machine loses power: nobody learns of it."""
    if world.operators.up is not None:
        world.network.off.add(TERMINAL)
        world.operators.up.end(-9, has_power=False)


def _unprinted(number: int) -> Callable[[Fault, Any], Any]:
    """The launcher can print no more: the disk of its stdout is full, stdout is closed, or nobody reads it."""

    def begin(fault: Fault, world: Any) -> None:
        if world.operators.up is not None:
            world.operators.up.unprinted = number

    return begin


_BEGIN: Dict[str, Callable[[Fault, Any], Any]] = {
    "ctrl-c": _signals(signal.SIGINT),
    "ctrl-c twice": _signals(signal.SIGINT, signal.SIGINT),
    "ctrl-z": _signals(signal.SIGTSTP, signal.SIGCONT),
    "stopped launcher": _signals(signal.SIGSTOP, signal.SIGCONT),
    "laptop sleeps": lambda fault, world: world.operators.sleep(),
    "laptop off": _off,
    "line": _line(True, True),
    "line in": _line(False, True),
    "line out": _line(True, False),
    "lines": _line(True, True, every=True),
    "half-open": lambda fault, world: world.network.lose_connections(TERMINAL, fault.what),
    "watch": lambda fault, world: world.operators.watch(fault.seconds),
    **{kind: _unprinted(number) for kind, number in UNPRINTED.items()},
    "damaged code": lambda fault, world: damage(world.machines[fault.what]),
    "another down": lambda fault, world: world.end({"do": "stop"}),
}
