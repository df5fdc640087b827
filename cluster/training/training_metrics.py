"""The metrics of the examples that trained last, over all workers.

The score of an example is the one that the step computed, before the example changed the model. While each example
comes for the first time, this is as honest as held-out data ("progressive validation": Blum, Kalai and Langford, 1999).
A worker writes its newest examples to ``ps:0`` every few seconds; the chief reads them all, and measures.
"""

import time
from typing import Any, Callable, Dict, List, Optional, Sequence

from cluster.recommend.scoring.examples import NewestExamples, pack, share_of, together, unpack
from cluster.recommend.scoring.metric_columns import Columns
from cluster.runtime.devices import ps_device
from cluster.runtime.server_state import kept
from cluster.runtime.tf_compat import tf
from cluster.task import Task
from cluster.training.run_steps import LastStep

EVERY_S = 5.0
_PAUSES = 20  # times as long as measuring took: at most a 20th of the time goes into it


class TrainingMetrics:
    """Keep one worker's newest examples; on the chief, measure those of all workers.

    Args:
      columns: of the model's metrics; None without any.
      last: the last step of the run, at which the chief always measures.

    Attributes:
      fetches: what to fetch with each step.
      latest: the chief's newest values by name, NaN for an undefined one; empty before the first.
    """

    def __init__(
        self, task: Task, columns: Optional[Columns], last: LastStep, clock: Callable[[], float] = time.monotonic
    ):
        self.fetches: List[Any] = [] if columns is None else columns.tensors
        self.latest: Dict[str, float] = {}
        self._columns, self._task, self._last, self._clock = columns, task, last, clock
        self._newest = NewestExamples(len(self.fetches), share_of(task.num_workers))
        self._due_at: Optional[float] = None
        indices = range(task.num_workers) if task.is_chief else [task.worker_index]
        self._windows = [_window(index) for index in indices if self.fetches and task.num_workers > 1]
        self._read = [each.read_value() for each in self._windows[1:]]  # the chief has its own
        self._own = tf.placeholder(tf.string, [])
        self._write = [tf.assign(each, self._own).op for each in self._windows[:1] if not task.is_chief]

    def begin(self, session: Any) -> None:
        """Chief, before it lets workers join: forget the examples of all other workers."""
        session.run([each.initializer for each in self._windows])

    def note(self, session: Any, step: int, fetched: Sequence[Any]) -> None:
        """Note what was fetched with the step that led to the global step ``step``.

        Every ``EVERY_S`` seconds, or less often where that takes long, write or measure.

        Raises:
          JobError: a metric has no meaning for its examples.
        """
        if not self.fetches:
            return
        self._newest.add(fetched)
        is_last = self._task.is_chief and step >= self._last.step
        began = self._clock()
        if self._due_at is None or is_last or began >= self._due_at:
            self._measure(session)
            self._due_at = began + max(EVERY_S, _PAUSES * (self._clock() - began))

    def _measure(self, session: Any) -> None:
        own = self._newest.columns()
        if own is None or self._columns is None:
            return
        if not self._task.is_chief:
            session.run(self._write, {self._own: pack(own)})
            return
        others = [unpack(data) for data in session.run(self._read) if data]
        self.latest = self._columns.values(together([own, *others]))


def _window(index: int) -> Any:
    with tf.device(ps_device(0)), tf.variable_scope("training_metrics"):
        return kept(f"worker_{index}", [], tf.string, "")
