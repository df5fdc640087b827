"""What agents are ordered to do, looked at as they obey: the servers' processes end after those of the workers."""

from typing import Any

from launch.agent.protocol.messages import Stop
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
                self._servers_end_last(order)
            obey(order, now)

        life.tasks.obey = looked_at

    def _servers_end_last(self, order: Stop) -> None:
        """I6: in an orderly end, no worker acts any more when a server is ended."""
        world, supervisor = self._world, self._world.supervisor()
        if supervisor is None or supervisor.state.phase is not Phase.CLOSING or world.is_killing:
            return
        if supervisor.tasks[order.task].recalled or order.grace_s == END_S:
            return  # that was ordered before the run ended: for a restart, or for a new formation
        others = [each for each in world.acting() if not each.task.startswith("ps")]
        acting = sorted(each.task for each in others if not world.promises.has_just_woken([each]))
        if acting:
            world.fail(f"I6: {order.task} is ended while {', '.join(acting)} still act")
