"""What must hold after every event of a history, whatever happens."""

from typing import Any, Dict, List

WAKING_S = 3.5  # after a machine wakes, for its agent to end what runs there
BOUND_S = 150.0  # for a run to end, after it was asked to, once nothing is in its way


class Broken(AssertionError):
    """A promise does not hold."""


class Promises:
    """The promises of one history.

    Args:
      world: has machines, training, and the lead.
    """

    def __init__(self, world: Any):
        self._world = world

    def look(self) -> None:
        """Raise Broken where one does not hold now."""
        self._one_process_of_each_task()
        self._events_count_once()
        self._the_run_ends()

    def _one_process_of_each_task(self) -> None:
        """I1, I3: no two processes of one task can act; after a sleep within some seconds."""
        world = self._world
        leaders: Dict[str, Dict[int, Any]] = {}  # a child acts for its leader, also when that has ended
        for each in world.living():
            if self._acts(each):
                leaders.setdefault(each.task, {})[each.leader] = each
        for task, by_leader in leaders.items():
            if len(by_leader) < 2:
                continue
            acting = list(by_leader.values())
            hosts = ", ".join(f"{each.host} attempt {each.attempt}" for each in acting)
            woken = [world.woken_at[each.host] for each in acting if each.host in world.woken_at]
            if not woken or world.agenda.now - max(woken) > WAKING_S:
                raise Broken(f"I1: {len(acting)} processes of {task} can act: {hosts}")

    def _acts(self, process: Any) -> bool:
        machine = self._world.machines[process.host]
        return machine.has_power and not machine.clock.is_asleep and not process.is_dying and not process.waits

    def _events_count_once(self) -> None:
        """I5: no task has more attempts than processes."""
        supervisor = self._world.supervisor()
        if supervisor is None:
            return
        for name, task in supervisor.tasks.items():
            begun = sum(each.task == name for each in self._world.training.processes)
            if task.attempt > begun:
                raise Broken(f"I5: {name} has attempt {task.attempt} after {begun} processes")

    def _the_run_ends(self) -> None:
        """I7: a run that was asked to end does, in bounded time."""
        world = self._world
        if world.asked_at is not None and world.agenda.now > max(world.asked_at, world.healed_at) + BOUND_S:
            living: List[str] = [each.task for each in world.living()]
            agents = [host for host, each in world.machines.items() if each.life is not None]
            if living or agents:
                raise Broken(f"I7: {BOUND_S:.0f} s after its end was asked for, there are {living} and agents {agents}")
