"""What a seed makes happen: faults and operators, each at a time; calm or murderous."""

from functools import partial
from random import Random
from typing import Any, Callable, Dict, List, Mapping, NamedTuple

from tests.simulation import keeper_faults
from tests.simulation.machines import OFF_S
from tests.simulation.processes import Process

LONGEST_S = 120.0  # of a fault that ends
BUSY_S = 5.0  # of a call that blocks: a longer one is a frozen agent


class Fault(NamedTuple):
    """One thing that happens: its name, when, to which host or task, and for how long."""

    at: float
    kind: str
    what: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        lasts = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.at:.1f} {self.kind} {self.what}{lasts}"


# How often each kind is drawn, beside the others.
KINDS: Dict[str, int] = {
    "cut": 8, "cut out": 5, "cut in": 5, "flap": 3, "slow": 5, "reset": 5, "power": 3, "agent": 6, "crash": 8,
    "freeze": 3, "stubborn": 3, "late": 3, "sleep": 4, "clock": 3, "stopped": 4, "disk": 2, "reboot": 2, "gone": 2,
    "leave": 2, "restart": 3, "drain": 3, "back": 2, "save": 2, "stop": 1, "twice": 1, "kill": 1, "launcher": 1,
    "children": 4, "stuck": 3, "busy": 3, "queue": 2,
}  # fmt: skip
_OF_TASKS = ("crash", "freeze", "stubborn", "late", "restart", "drain", "back", "children", "stuck")


def drawn(random: Random, hosts: List[str], tasks: Mapping[str, str], until: float) -> List[Fault]:
    """The faults of one history.

    Args:
      tasks: the host of each.
    """
    found: List[Fault] = []
    for _ in range(random.choice([0, 1, 2, 2, 3, 3, 4, 6, 10])):
        kind = random.choices(list(KINDS), list(KINDS.values()))[0]
        seconds = random.choice([0.5, 3.0, 9.5, 11.0, 14.0, 30.0, 60.0, LONGEST_S]) * random.uniform(0.8, 1.2)
        at, host = random.uniform(0.0, until), random.choice(hosts)
        if found and random.random() < 0.5:  # soon after the one before, on its host
            before = found[-1]
            at = before.at + random.choice([0.0, 0.3, 1.0, 4.0, 10.0, 13.0, 14.0, 25.0]) * random.uniform(0.9, 1.1)
            host = tasks.get(before.what, before.what) or host
        elif random.random() < 0.3:  # as the run begins, or as training ends
            at = random.uniform(*random.choice([(0.5, 2.5), (0.0, 15.0), (590.0, 640.0)]))
        there = [task for task in tasks if tasks[task] == host] or list(tasks)
        found.append(Fault(at, kind, random.choice(there) if kind in _OF_TASKS else host, seconds))
    return sorted(found)


def second_leaves(seed: int, drawn: List[Fault]) -> List[Fault]:
    """Return second notices, to hosts that leave already: half of them get one."""
    random, leaves = Random(seed + 17), [fault for fault in drawn if fault.kind == "leave"]
    return [fault._replace(at=fault.at + random.uniform(0.3, 9.0)) for fault in leaves if random.random() < 0.5]


def begin(fault: Fault, world: Any) -> None:
    """Let a fault begin, and end after its time."""
    world.note(fault.what or "-", f"fault: {fault.kind} {fault.seconds:.1f} s")
    undo = BEGIN.get(fault.kind, world.operators.meet)(fault, world)
    if undo is not None:
        world.agenda.after(min(fault.seconds, LONGEST_S), undo)


Begin = Callable[[Fault, Any], Any]


def _cut(inward: bool, outward: bool) -> Begin:
    def begin(fault: Fault, world: Any) -> Any:
        host, others = fault.what, [each for each in world.operators.places if each != fault.what]
        pairs = [(host, each) for each in others if outward] + [(each, host) for each in others if inward]
        added = set(pairs) - world.network.cut
        world.network.cut |= added

        def heal() -> None:
            world.network.cut -= added
            world.note(host, "the network heals")

        return heal

    return begin


def _flap(fault: Fault, world: Any) -> None:
    """A link goes, comes in one direction only, and goes again."""
    world.network.break_connections(fault.what)
    for after_s, kind, seconds in [(0.5, "cut in", 8.0), (9.0, "cut", fault.seconds)]:
        later = Fault(world.agenda.now + after_s, kind, fault.what, seconds)
        world.agenda.after(after_s, partial(begin, later, world))


def _slow(fault: Fault, world: Any) -> Any:
    usual_s, world.network.slow_s = world.network.slow_s, 0.3

    def quick() -> None:
        world.network.slow_s = usual_s

    return quick


def _lasting(start: str, end: str) -> Begin:
    def begin(fault: Fault, world: Any) -> Any:
        machine = world.machines[fault.what]
        getattr(machine, start)()  # by name: a launched machine does more
        return getattr(machine, end)

    return begin


def _busy(fault: Fault, world: Any) -> None:
    """An agent reads and answers nothing for a while, as in a call that blocks."""
    world.machines[fault.what].stand_still(min(fault.seconds, BUSY_S))


def _queue(fault: Fault, world: Any) -> Any:
    """The queue of new connections of a host is full."""
    world.network.full.add(fault.what)
    return partial(world.network.full.discard, fault.what)


def _reboot(fault: Fault, world: Any) -> None:
    """A machine goes down in order, and boots."""
    machine = world.machines[fault.what]
    machine.reboot()
    world.agenda.after(OFF_S + min(fault.seconds, LONGEST_S), machine.boot)


def _disk(fault: Fault, world: Any) -> Any:
    disk = world.machines[fault.what].disk
    disk.is_full = True

    def freed() -> None:
        disk.is_full = False

    return freed


def _drain(fault: Fault, world: Any) -> Any:
    world.ask({"do": "drain", "tasks": [fault.what], "back": fault.kind == "back"})


def _twice(fault: Fault, world: Any) -> Any:
    world.end({"do": "stop", "reason": "the operator"})
    world.agenda.after(fault.seconds, lambda: world.end({"do": "kill", "reason": "the operator"}))


def _process(change: Callable[[Process], None]) -> Begin:
    def begin(fault: Fault, world: Any) -> None:
        for process in world.training.living(fault.what):
            change(process)

    return begin


def _freeze(process: Process) -> None:
    process.is_frozen = True


def _stubborn(process: Process) -> None:
    process.ignores_term = True


def _late(process: Process) -> None:
    process.dies_after = 3.0


def _children(fault: Fault, world: Any) -> None:
    for process in (each for each in world.training.living(fault.what) if not each.is_still):
        session = process.session if fault.seconds < 10 else 0
        world.machines[process.host].leave_child(process, session)


def _stuck(fault: Fault, world: Any) -> Any:
    found = world.training.living(fault.what)
    for process in found:
        process.hang()

    def free() -> None:
        for process in found:
            process.free()

    return free


BEGIN: Dict[str, Begin] = {
    "cut": _cut(True, True),
    "cut out": _cut(False, True),
    "cut in": _cut(True, False),
    "flap": _flap,
    "slow": _slow,
    "reset": lambda fault, world: world.network.break_connections(fault.what),
    "power": _lasting("lose_power", "boot"),
    "sleep": _lasting("sleep", "wake"),
    "agent": lambda fault, world: world.machines[fault.what].kill_agent(),
    "clock": lambda fault, world: world.machines[fault.what].clock.jump(3600.0 if fault.seconds > 10 else -3600.0),
    "crash": _process(lambda process: process.end(1)),
    "freeze": _process(_freeze),
    "stubborn": _process(_stubborn),
    "late": _process(_late),
    "restart": lambda fault, world: world.ask({"do": "restart", "tasks": [fault.what]}),
    "stopped": _lasting("stop_agent", "continue_agent"),
    "disk": _disk,
    "reboot": _reboot,
    "gone": lambda fault, world: world.machines[fault.what].lose_power(),
    "leave": lambda fault, world: world.machines[fault.what].leave("a notice"),
    "drain": _drain,
    "back": _drain,
    "save": lambda fault, world: world.ask({"do": "save"}),
    "stop": lambda fault, world: world.end({"do": "stop", "reason": "the operator"}),
    "twice": _twice,
    "kill": lambda fault, world: world.end({"do": "kill", "reason": "the operator"}),
    "children": _children,
    "stuck": _stuck,
    "busy": _busy,
    "queue": _queue,
    "launcher": lambda fault, world: world.lose_launcher(),
    **keeper_faults.BEGIN,
}
