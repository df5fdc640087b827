"""What one fault may cost, as docs/faults.md has it: the run's end, restarts, incidents, steps, and time."""

from typing import Any, Callable, Collection, Dict, List, NamedTuple, Optional, Sequence, Tuple

from launch.agent.wire.run_request import RunPlan
from tests.simulation.faults import LONGEST_S, Fault
from tests.simulation.machines import OFF_S, UP_S
from tests.simulation.training import SAVED_EVERY, START_S

FROM_S, UNTIL_S = 20.0, 560.0  # while all train
BRIEF_S = 6.0  # a silence that everybody outlasts, with a late ping, a dial that waits, and a clock that runs fast
OF_POWER = ("gone", "power", "reboot")  # after which a boot brings back what it can
LONG_S = 18.0  # one after which they are lost
LOST_S = (11.6, 17.5)  # when the lead counts a host as lost: the last ping was up to 1 s before, 13 s take 3 % less
LEASE_S = (11.5, 19.0)  # when it counts the launcher as lost
APART_S = 90.0  # from the end of one fault to the next one, which finds the run whole
TICK_S = 1.0  # of training, and of looks
PULSE_S = 10.0  # until the keeper kills an agent without one
AGAIN_S = 1.0 + START_S + TICK_S  # a pause before the restart, and the start
UNSEEN_STEPS = 6  # that are taken between two reports
MOST_LOST = SAVED_EVERY + UNSEEN_STEPS

Blame = Tuple[str, str]  # the kind of an incident, and its task or host


class Cost(NamedTuple):
    """What may come of a fault: the run's end, restarts, incidents, and for how long training stands.

    ``restarts`` has a task as often as it restarts.

    ``cause`` is in that of the run; ``formation`` is the number of changes of an elastic run.
    """

    state: str = "succeeded"
    cause: str = ""
    restarts: Sequence[str] = ()
    blames: Sequence[Blame] = ()
    lost_steps: int = 0
    stands_s: float = TICK_S
    ends_s: Optional[Tuple[float, float]] = None  # after the fault, where it is the run's end
    formation: int = 0
    lost: Sequence[str] = ()  # tasks that are lost at the end
    drained: Sequence[str] = ()  # tasks that were let go
    without: Sequence[str] = ()  # hosts that an elastic run has lost
    falls: int = 1  # how often training goes back, at most


def cost(world: Any) -> Optional[Cost]:
    """Return what the faults of a history may cost; None where that is not known beforehand."""
    if world.shape.backoff_s != RunPlan.backoff_s:
        return None
    total = Cost(falls=0)
    for fault, following in zip(world.faults, [*world.faults[1:], None]):
        rule = _RULES.get(fault.kind)
        one = rule(fault, world) if rule is not None and FROM_S < fault.at < UNTIL_S else None
        is_last = following is None
        if one is None or not (is_last or (_is_whole(one) and following.at > fault.at + fault.seconds + APART_S)):
            return None
        if total.formation and fault.what == world.lead_host and one.restarts:
            return None  # another lead counts formations from its own first
        total = _sum(total, one, world)
    return total


def _is_whole(one: Cost) -> bool:
    """Return whether a run is as before, once such a fault is over."""
    return one.state == "succeeded" and not (one.lost or one.drained or one.without)


def _failures_of(before: Cost, blame: Blame, world: Any) -> int:
    """Return how often the blamed task, or a worker that shares its failures, has failed before."""
    kind, task = blame
    if world.shape.together and task.startswith("worker"):
        return sum(other == kind and name.startswith("worker") for other, name in before.blames)
    return before.blames.count(blame)


def _sum(before: Cost, one: Cost, world: Any) -> Cost:
    """Return the cost of a fault after others that left the run whole; each pause of a task is twice the one before."""
    failures = max((_failures_of(before, blame, world) for blame in one.blames), default=0)
    stands_s = one.stands_s + 2.0**failures - 1
    return one._replace(
        restarts=[*before.restarts, *one.restarts], blames=[*before.blames, *one.blames],
        lost_steps=before.lost_steps + one.lost_steps, stands_s=max(before.stands_s, stands_s),
        formation=before.formation + one.formation, falls=before.falls + one.falls,
    )  # fmt: skip


def _with_others(world: Any, tasks: Sequence[str]) -> List[str]:
    """Return tasks that restart, with all workers where one of them is a worker and they restart together."""
    together = world.shape.together and any(name.startswith("worker") for name in tasks)
    others = [name for name in split(world, []).stay if name.startswith("worker") and together]
    return [*tasks, *(name for name in others if name not in tasks)]


def is_spare(world: Any, name: str) -> bool:
    """Return whether a task only waits to take the place of another."""
    return any(task.name == name and task.spare for task in world.plan.tasks)


def _nothing(fault: Fault, world: Any) -> Cost:
    return Cost()


def _habit(fault: Fault, world: Any) -> Optional[Cost]:
    """A process that leaves late costs nothing by itself, and prolongs whatever ends it after that."""
    return Cost() if fault is world.faults[-1] else None


def _disk(fault: Fault, world: Any) -> Optional[Cost]:
    """A full disk is no matter, unless the end finds it full."""
    return Cost() if fault.at + fault.seconds < UNTIL_S else None


class Split(NamedTuple):
    """The tasks that are gone, those that train on, and spares that train in the place of a ps that is gone."""

    gone: List[str]
    stay: List[str]
    fill: List[str]
    changes: bool  # whether any of the gone ones trained

    def count(self, role: str) -> int:
        """Return how many tasks of a role train on."""
        return sum(name.split(":")[0] == role for name in [*self.stay, *self.fill])

    @property
    def is_enough(self) -> bool:
        """Return whether training can go on."""
        return bool(self.count("ps") and self.count("worker"))


def split(world: Any, gone: Collection[str]) -> Split:
    """Return which tasks train on without others."""
    tasks = world.plan.tasks
    trained = [task.name for task in tasks if not task.spare]
    places = sum(name.startswith("ps") for name in trained if name in gone)
    spares = [task.name for task in tasks if task.spare and task.name not in gone]
    stay = [name for name in trained if name not in gone]
    return Split(list(gone), stay, spares[:places], len(stay) < len(trained))


def _on(world: Any, host: str) -> List[str]:
    return [task.name for task in world.plan.tasks if task.host == host]


def _cut(fault: Fault, world: Any) -> Optional[Cost]:
    """A short silence costs its time; after a long one a host is lost."""
    if fault.seconds <= BRIEF_S:
        return Cost(stands_s=fault.seconds + 2 * TICK_S)
    if fault.seconds < LONG_S or fault.at + fault.seconds > UNTIL_S:
        return None
    return _rejoined(fault, world) if world.shape.elastic else _lost(fault, world) if fault.kind != "sleep" else None


def _rejoined(fault: Fault, world: Any) -> Optional[Cost]:
    """A member that is lost for a while joins again; for that, training goes back no second time."""
    found = _lost(fault, world)
    if found is None or found.state == "failed":
        return found
    found = found._replace(lost=[], without=[], stands_s=found.stands_s + TICK_S)
    again = split(world, []).stay
    return found._replace(restarts=[*found.restarts, *again], formation=2) if found.formation else found


def _power(fault: Fault, world: Any) -> Optional[Cost]:
    return _returned(fault, world) if world.shape.returns else _lost(fault, world)


def _gone(fault: Fault, world: Any) -> Optional[Cost]:
    """A member loses power for good. Where a boot would bring it back, that is waited for."""
    found = _lost(fault, world)
    if not world.shape.returns or world.shape.elastic or found is None:
        return found
    return found._replace(cause=f"{fault.what}: no message for 54", ends_s=(500.0, 580.0)) if fault.at < 300 else None


def _reboot(fault: Fault, world: Any) -> Optional[Cost]:
    return _returned(fault, world) if world.shape.returns else None


def _returned(fault: Fault, world: Any) -> Optional[Cost]:
    """A member comes back after a boot; everybody starts again, as other tasks would reach it late."""
    if fault.what == world.lead_host:
        return None
    if world.shape.elastic:
        return _rejoined(fault, world)
    restarts = split(world, []).stay
    stands_s = OFF_S + 2 * TICK_S + min(fault.seconds, LONGEST_S) + UP_S + AGAIN_S + TICK_S
    return Cost(restarts=restarts, blames=[("agent", fault.what)], lost_steps=MOST_LOST, stands_s=stands_s)


def _lost(fault: Fault, world: Any) -> Optional[Cost]:
    """A member that is gone for good: others go on without its tasks, or the run ends and names it."""
    host, shape = fault.what, world.shape
    of = split(world, _on(world, host))
    if host == world.lead_host or (shape.returns and fault.kind not in OF_POWER):
        return None
    blames = [("host", host)]
    if not shape.elastic or not of.is_enough:
        return Cost("failed", f"{host}: no message for 13 s", blames=blames, ends_s=LOST_S)
    if not of.changes:
        return Cost(blames=blames, stands_s=2 * TICK_S, lost=of.gone, without=[host])
    return Cost(
        restarts=of.stay, blames=blames, lost_steps=MOST_LOST, stands_s=LOST_S[1] + AGAIN_S, formation=1, lost=of.gone,
        without=[host],
    )  # fmt: skip


def _crash(fault: Fault, world: Any) -> Optional[Cost]:
    """A process is restarted in place; with a ps, training goes back to the checkpoint."""
    if is_spare(world, fault.what):
        return None
    lost = MOST_LOST if fault.what.startswith("ps") else 0
    restarts = _with_others(world, [fault.what])
    return Cost(restarts=restarts, blames=[("exit", fault.what)], lost_steps=lost, stands_s=AGAIN_S)


def _restart(fault: Fault, world: Any) -> Optional[Cost]:
    """An operator's restart is no incident."""
    found = _crash(fault, world)
    return None if found is None else found._replace(blames=[])


def _agent(fault: Fault, world: Any) -> Optional[Cost]:
    """The tasks of an agent end with it, and with the lead's all; where it begins again, they do."""
    if not world.shape.detached:
        return _lost(fault, world)
    if sum(other.what == fault.what and other.kind in ("agent", "exit", "stopped") for other in world.faults) > 3:
        return None  # its keeper pauses for half a minute
    trained = split(world, []).stay
    tasks = trained if fault.what == world.lead_host else [name for name in _on(world, fault.what) if name in trained]
    lost = MOST_LOST if any(task.startswith("ps") for task in tasks) else 0
    restarts = _with_others(world, tasks)
    return Cost(restarts=restarts, blames=[("agent", fault.what)], lost_steps=lost, stands_s=AGAIN_S + 2 * TICK_S)


def _stopped(fault: Fault, world: Any) -> Optional[Cost]:
    """A short stop costs nothing; after a long one the keeper kills the agent."""
    if fault.seconds <= BRIEF_S:
        return Cost()
    found = _agent(fault, world) if fault.seconds > LONG_S and world.shape.detached else None
    return None if found is None else found._replace(stands_s=found.stands_s + PULSE_S)


def _stop(fault: Fault, world: Any) -> Cost:
    return Cost("stopped", "the operator", ends_s=(0.0, TICK_S))


def _launcher(fault: Fault, world: Any) -> Cost:
    """A run that its launcher has not left to itself ends with its lease."""
    if world.shape.detached:
        return Cost()
    return Cost("stopped", "its lease on the run ended", ends_s=LEASE_S)


def _leave(fault: Fault, world: Any) -> Optional[Cost]:
    """A host that goes in order: the run goes on without it, or stops, and loses nothing."""
    of = split(world, _on(world, fault.what))
    if not world.shape.elastic or fault.what == world.lead_host or not of.is_enough:
        return Cost("stopped", f"{fault.what} leaves: a notice", ends_s=(0.0, TICK_S))
    return Cost(
        restarts=of.stay if of.changes else [], blames=[("host", fault.what)], stands_s=AGAIN_S,
        formation=int(of.changes), lost=of.gone, drained=of.gone, without=[fault.what],
    )  # fmt: skip


def _drain(fault: Fault, world: Any) -> Optional[Cost]:
    """A task other than the chief can be left out of an elastic run that has enough, and loses nothing."""
    of = split(world, [fault.what])
    if not world.shape.elastic or fault.what == "worker:0" or not of.is_enough:
        return Cost()
    if not of.changes:
        return Cost(drained=[fault.what])
    return Cost(restarts=of.stay, stands_s=2 * TICK_S, formation=1, drained=[fault.what])


def _stuck(fault: Fault, world: Any) -> Cost:
    """A process that hangs in the kernel is waited for."""
    return Cost(stands_s=min(fault.seconds, LONGEST_S) + 2 * TICK_S)


_RULES: Dict[str, Callable[[Fault, Any], Optional[Cost]]] = {
    **dict.fromkeys(("reset", "clock", "save", "children", "busy", "queue", "rival"), _nothing),
    **dict.fromkeys(("stubborn", "late", "keeper", "keeper stopped", "memory", "refused", "taken", "tidy"), _habit),
    **dict.fromkeys(("cut", "cut in", "cut out", "sleep"), _cut),
    **dict.fromkeys(("stop", "kill", "twice"), _stop),
    "disk": _disk, "power": _power, "gone": _gone, "reboot": _reboot, "crash": _crash, "restart": _restart,
    "agent": _agent, "exit": _agent, "stopped": _stopped, "launcher": _launcher, "leave": _leave, "drain": _drain,
    "stuck": _stuck,
}  # fmt: skip
