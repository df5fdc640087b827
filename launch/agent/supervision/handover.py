"""A planned change of the tasks that train, which loses no step.

    prepare   while the current formation trains, a process for each task of the next one starts and loads TensorFlow
    save      once these processes wait, the chief saves, and takes no further step
    end       the supervisor ends the formation, and starts the next formation from this checkpoint

Any failure ends the change, and training continues unchanged.
"""

from typing import Dict, List, Mapping, Optional, Sequence

from cluster.protocol.save_request import HOLD
from launch.agent.protocol.messages import PREPARE_S, Dismiss, Order, Prepare, Prepared
from launch.agent.supervision.saving import Saving

TRAIN_S = 60.0  # for a chief that cannot save now, because it restarts


class Handover:
    """One planned change in progress.

    Args:
      before: the operator's wishes, to restore if the change fails.
      orders: the orders that prepare the processes.
      saving: the requests to the chief to save.

    ``is_over`` is True once the formation may end; ``problem`` is the reason why the change failed.
    """

    def __init__(self, before: Mapping[str, bool], orders: Sequence[Prepare], saving: Saving, now: float):
        self.before: Dict[str, bool] = dict(before)
        self.is_over = False
        self.problem: Optional[str] = None
        self._orders, self._saving = orders, saving
        self._unready = {(order.task, order.attempt) for order in orders}
        self._ready_by = now + PREPARE_S
        self._has_asked = False

    def record(self, event: Prepared) -> None:
        """Record that a task's new process is ready and waits, or that it could not be prepared."""
        self._unready.discard((event.task, event.attempt))

    def next_orders(self, now: float) -> List[Order]:
        """Return the orders for the next stage of the change, if that stage is due now."""
        if self._has_asked:
            return [] if self._saving.is_pending(now) else self._conclude()
        if self._unready and now < self._ready_by:
            return []
        asked = self._saving.ask(now, HOLD)
        self._has_asked = bool(asked)
        if not asked and now >= self._ready_by + TRAIN_S:
            return self._give_up("the chief does not train")
        return asked

    def _conclude(self) -> List[Order]:
        if not self._saving.is_held:
            return self._give_up("the chief could not save")
        self.is_over = True
        return []

    def _give_up(self, problem: str) -> List[Order]:
        self.problem = problem
        return [Dismiss(order.task, order.number) for order in self._orders]
