"""What agents are ordered to do: servers end after the workers, and workers that start together meet no former one."""

from typing import Any

from launch.agent.protocol.messages import Start, Stop
from launch.agent.service.lead import Lead
from launch.agent.supervision.elastic import END_S
from launch.agent.supervision.run_state import Phase


class Orders:
    """The orders of one history.

    Args:
      world: has training, the lead, and what the operator has asked for.
    """

    def __init__(self, world: Any):
        self._world = world

    def watch(self, life: Any) -> None:
        """Look at each order that a life of an agent obeys."""
        obey = life.tasks.obey

        def looked_at(order: Any, now: float) -> None:
            if isinstance(order, Stop) and order.task.startswith("ps") and order.grace_s > 0:
                self._servers_end_last(order, life.machine.folder.run)
            obey(order, now)

        life.tasks.obey = looked_at
        if isinstance(life.agent, Lead) and self._world.shape.together:
            self._watch_starts(life.agent._supervisor, life.machine.folder.run)

    def _watch_starts(self, supervisor: Any, run: str) -> None:
        handle = supervisor.handle

        def looked_at(event: Any, now: float) -> Any:
            orders = handle(event, now)
            for order in orders:
                if isinstance(order, Start) and order.task.startswith("worker"):
                    self._workers_start_together(order, run)
            return orders

        supervisor.handle = looked_at

    def _workers_start_together(self, order: Start, run: str) -> None:
        """I3: where workers restart together, none is ordered to start while one of the former attempt lives.

        A lead that was suspended may order starts until it has looked at its clocks, while its successor's tasks live.
        """
        cluster, now = order.cluster or self._world.cluster, self._world.agenda.now
        workers = [each for each in self._world.living() if each.task.startswith("worker") and not each.waits]
        living = [
            each for each in workers if each.formation == cluster and each.began < now and each.run in (None, run)
        ]
        former = sorted(f"{each.task} attempt {each.attempt}" for each in living)
        if former:
            self._world.fail(f"I3: {order.task} is ordered to start while {', '.join(former)} lives")

    def _servers_end_last(self, order: Stop, run: str) -> None:
        """I6: in an orderly end, no worker of the run acts any more when a server is ended."""
        world, supervisor = self._world, self._world.supervisor()
        if supervisor is None or supervisor.state.phase is not Phase.CLOSING or world.is_killing:
            return
        if supervisor.tasks[order.task].recalled or order.grace_s == END_S:
            return  # that was ordered before the run ended: for a restart, or for a new formation
        others = [each for each in world.acting() if each.run in (None, run) and not each.task.startswith("ps")]
        acting = sorted(each.task for each in others if not world.promises.is_excused([each]))
        if acting:
            world.fail(f"I6: {order.task} is ended while {', '.join(acting)} still act")
