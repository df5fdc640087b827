"""The step at which training ends, which the chief may bring forward.

It lies on ``ps:0``, where every worker reads it with each of its steps. A synchronous step needs a gradient of every
worker, so all workers must end at the same step:

    chief     has seen step t end, decides, and writes t + 2
    others    are in step t + 1 meanwhile, and may have read the old number; that step waits for the chief
    all       begin step t + 2 after that, read the new number with it, and end

Without ``train.best.patience`` nothing is read, and nothing lies there.
"""

from typing import Any, List, Sequence

from cluster.runtime.devices import ps_device
from cluster.runtime.server_state import kept
from cluster.runtime.tf_compat import tf
from cluster.task import Train

NOTICE = 2  # steps between the decision and the last one


class LastStep:
    """The last step, as one worker knows it.

    Attributes:
      step: the global step at which this worker ends.
      fetches: what to fetch with each step.
    """

    def __init__(self, settings: Train):
        self.step = settings.last_step
        self.fetches: List[Any] = []
        if settings.best.patience is None:
            return
        with tf.device(ps_device(0)), tf.variable_scope("last_step"):
            step = kept("step", [], tf.int64, 0)
            self._number = tf.placeholder(tf.int64, [])
            self._write = tf.assign(step, self._number).op
            self.fetches = [step.read_value()]

    def begin(self, session: Any) -> None:
        """Chief, before it lets workers join: write the last step."""
        if self.fetches:
            session.run(self._write, {self._number: self.step})

    def learn(self, session: Any) -> None:
        """Read the last step, once the chief has begun."""
        self.note(session.run(self.fetches))

    def note(self, fetched: Sequence[Any]) -> None:
        """Note what was fetched with a step."""
        for number in fetched:
            self.step = min(self.step, int(number))

    def bring_forward(self, session: Any, step: int) -> None:
        """Chief, after ``step``: end training ``NOTICE`` steps later, if it does not end before."""
        self.step = min(self.step, step + NOTICE)
        self.begin(session)
