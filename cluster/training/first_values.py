"""Give the variables of a new run their first values, those of a warm start too, and keep workers out meanwhile.

Where a run has a warm start, a variable on ``ps:0`` keeps whether the values are complete. Variables have values
before those of the warm start come. So workers would begin too early in asynchronous training, and a chief that
starts again would take half a warm start for all of it.
"""

from typing import Any, List, Optional

from cluster.checkpoints.warm_start import WarmLoader
from cluster.runtime.devices import ps_device
from cluster.runtime.server_state import kept
from cluster.runtime.tf_compat import tf
from cluster.steps.replica import Replica
from cluster.task import Task, WarmStart
from cluster.variables.masters import SCOPE


class FirstValues:
    """Make the first values of a run, in the graph of one worker.

    Args:
      host: the device of the worker's memory.
      warm_start: None without one.

    ``state``: variables that must have a value before a worker can join.
    ``are_the_chiefs``: whether the values on the servers are those that the chief's own variables have.
    """

    def __init__(self, task: Task, replica: Replica, host: str, warm_start: Optional[WarmStart]):
        self._replica, self.are_the_chiefs = replica, warm_start is None
        self.state: List[Any] = []
        self._loader: Optional[WarmLoader] = None
        if warm_start is not None:
            self._prepare(warm_start, host, task.is_chief)

    def _prepare(self, warm_start: WarmStart, host: str, is_chief: bool) -> None:
        with tf.device(ps_device(0)), tf.control_dependencies(None):
            complete = kept(f"{SCOPE}/first_values", [], tf.int64, 0)
            self._begin, self._end = complete.initializer, tf.assign(complete, 1).op
        self.state = [complete]
        if is_chief:
            self._loader = WarmLoader(warm_start, self._replica.of_model, self._replica.tables, host)

    def are_complete(self, session: Any) -> bool:
        """Return whether no chief is in the middle of giving values. Call it when ``state`` has values."""
        return all(session.run(self.state))

    def begin(self, session: Any) -> None:
        """Keep workers out, as the chief, until ``end``."""
        if self.state:
            session.run(self._begin)

    def end(self, session: Any) -> None:
        """Let workers in: every variable has its value."""
        if self.state:
            session.run(self._end)

    def give(self, session: Any) -> None:
        """Give all variables their first values, as the chief.

        Raises:
          CheckpointError: the checkpoint of the warm start is not there, or does not fit.
        """
        for given in self._replica.first_values:
            session.run(given)
        if self._loader is not None:
            print(self._loader.load(session), flush=True)
        for given in self._replica.first_slots:  # after the warm start: some copy the model's values
            session.run(given)
