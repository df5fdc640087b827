"""Who starts and ends the run of a history: the product's launchers, or requests in their place for older seeds."""

from contextlib import nullcontext
from typing import Any, ContextManager, Dict, List, Sequence

from launch.agent.service import recovery
from launch.status.run import is_over
from tests.simulation import disk_faults, keeper_faults
from tests.simulation.faults import Fault
from tests.simulation.machines import Machine
from tests.simulation.promises import BOUND_S
from tests.simulation.runs import FURTHER_FROM

BEAT_S, MOST_S = 3.0, 1800.0


class Operators:
    """The launcher and the operator as requests to agents that are there from the beginning."""

    is_over = True
    machine = Machine
    bound_s = BOUND_S
    forget_attempts = False
    forgotten_steps = 0  # passed over by a chief, whose report the lead's agent did not publish before it ended

    def __init__(self, world: Any):
        self._world = world

    @property
    def places(self) -> Sequence[str]:
        """The machines of the world."""
        return list(self._world.machines)

    def meet(self, fault: Fault, world: Any) -> Any:
        """Let a fault of launchers begin: there are none."""
        raise KeyError(fault.kind)

    def excuses(self, process: Any) -> bool:
        """Return whether a process may act beside the present run: no other run begins."""
        return False

    def look(self) -> None:
        """Raise Broken where a promise of launchers does not hold now."""

    def outcome(self, status: Dict[str, Any]) -> None:
        """Raise Broken where a launcher has not shown the run as it was, once all is over."""

    def expected(self, cost: Any) -> Any:
        """Return what the faults of the history may cost with these operators; None where that is not known."""
        return cost

    def replaced(self) -> ContextManager[None]:
        """Replace the names of the product that launchers ask for: none."""
        return nullcontext()

    def forget(self) -> None:
        """End what is left, once the world is over."""

    def begin(self) -> None:
        """Launch the run."""
        world = self._world
        if world.launcher_left_at is not None:
            return
        world.ask({"do": "go"})
        if world.is_detached:
            world.agenda.after(10.0, lambda: world.ask({"do": "detach"}))
        self._beat()

    def _beat(self) -> None:
        if self._world.launcher_left_at is None and self._world.agenda.now < MOST_S:
            clock = self._world.lead.clock
            self._world.ask({"do": "beat", "heard": (clock.monotonic(), clock.boottime())})
            self._world.agenda.after(BEAT_S, self._beat)

    def lose(self) -> None:
        """The launcher is gone."""
        self._world.launcher_left_at = self._world.agenda.now

    def restarts(self, machine: Any) -> bool:
        """Return whether the launcher, which has not left yet, starts the agent of a lead again."""
        request, folder = machine.request, machine.folder
        is_detaching = request.detached and not folder.has(recovery.DETACHED)
        goes_on = not is_over(folder.read_whole("status.json"))
        return request.run_plan is not None and self._world.launcher_left_at is None and is_detaching and goes_on

    def end(self, request: Dict[str, Any]) -> None:
        """Ask on every host, again and again as ``down`` does."""
        self._down(request, 0)

    def _down(self, request: Dict[str, Any], again: int) -> None:
        world = self._world
        hosts = [world.lead_host] if again < 4 else list(world.machines)
        for host in hosts:
            life = world.machines[host].life
            asked = request if again < 8 else {"do": "kill", "reason": "the operator"}
            world.is_killing = world.is_killing or asked["do"] == "kill"
            if life is not None and world._is_awake(host):
                life.ask(asked)
            if again >= 8:
                world.machines[host].end_left()
        if not world.is_over and world.agenda.now < MOST_S:
            world.agenda.after(10.0, lambda: self._down(request, again + 1))


def further_faults(seed: int, hosts: List[str], until: float) -> List[Fault]:
    """Return what happens to the launchers, the keepers and the disks of a seed."""
    if seed < FURTHER_FROM:
        return []
    from tests.simulation.launcher.faults import drawn

    of_keepers = [Fault(*each) for each in keeper_faults.drawn(seed, hosts, until)]
    return [*drawn(seed, hosts, until), *of_keepers, *disk_faults.drawn(seed, hosts, until)]


def operators_of(world: Any) -> Any:
    """Return who starts and ends a world's run."""
    if world.seed < FURTHER_FROM:
        return Operators(world)
    from tests.simulation.launcher.operators import Launchers  # only then: the launcher takes a second to load

    return Launchers(world)
