"""Join a run, at its begin or after a restart. Only the chief gives variables their values:

what the chief finds                      what it does
every variable has a value, and is open   joins the others; changes nothing
a step that is half applied               goes on as if a variable had no value
otherwise, and there is a checkpoint      restores the newest, and opens
otherwise                                 gives first values (``first_values``), and opens
"""

from typing import Any, Optional, Sequence, Union

from cluster.checkpoints.saver import Checkpoints
from cluster.errors import TrainingError
from cluster.protocol.heartbeat import Heartbeat
from cluster.runtime.tf_compat import tf
from cluster.runtime.waiting import wait_for
from cluster.steps.once_worker import TornStepError
from cluster.steps.replica import Replica
from cluster.task import Task
from cluster.training.first_values import FirstValues
from cluster.training.graph_agreement import GraphAgreement
from cluster.training.last_step import LastStep
from cluster.training.step_times import StepTimes
from cluster.training.training_metrics import TrainingMetrics
from cluster.variables.partition_count import PartitionCount


class Joining:
    """The operations by which one worker joins, in its graph.

    Args:
      last: the step at which training ends.
      reports: what workers write to ``ps:0``, and the chief begins.
      checkpoints: the chief's; None on another worker.
      first: the values of a run that begins.
    """

    def __init__(
        self,
        task: Task,
        replica: Replica,
        partition_count: PartitionCount,
        reports: Sequence[Union[StepTimes, TrainingMetrics]],
        last: LastStep,
        checkpoints: Optional[Checkpoints],
        first: FirstValues,
    ):
        self._last, self._replica, self._stepper = last, replica, replica.stepper
        self._partition_count, self._reports, self._checkpoints = partition_count, reports, checkpoints
        self._first = first
        rows, tables = (replica.tables.variables, replica.tables.trained) if replica.tables else ([], [])
        needed = [*replica.variables, *rows, *replica.stepper.needed, *first.state]
        self._without_value = tf.report_uninitialized_variables(needed)
        self._agreement = GraphAgreement(task, replica.agreed, replica.buckets, tables)

    def join(self, session: Any, heartbeat: Heartbeat) -> int:
        """Take this worker's place among the others, and return the global step.

        Raises:
          TrainingError: this worker's variables differ from the chief's, or no checkpoint can be read.
          TimeoutError: the chief did not answer in time.
        """
        self._settle(session)
        if self._replica.shares is not None:
            self._replica.shares.settle(session)
        if self._checkpoints is not None:
            return self._join_as_chief(session, heartbeat, self._checkpoints)
        heartbeat.note("waits for the chief to give the variables their values")
        wait_for("the chief to give the variables their values", lambda: self._is_ready(session))
        self._last.learn(session)
        return self._stepper.join(session, self._last.step)

    def _join_as_chief(self, session: Any, heartbeat: Heartbeat, checkpoints: Checkpoints) -> int:
        for report in (*self._reports, self._last):
            report.begin(session)
        checkpoints.open()
        if self._is_ready(session):
            checkpoints.adopt()
            try:
                return self._stepper.join(session, self._last.step)
            except TornStepError:
                print("the chief before this one ended while it applied a step; going back to a checkpoint", flush=True)
        self._stepper.close(session)
        heartbeat.note("gives the variables their values")
        self._first.begin(session)
        is_new = not checkpoints.restore(session)
        if is_new:
            self._first.give(session)
        self._first.end(session)
        return self._stepper.open(session, self._last.step, is_new and self._first.are_the_chiefs)

    def _settle(self, session: Any) -> None:
        self._partition_count.settle(session)
        try:
            self._agreement.settle(session)
        except TrainingError:
            self._partition_count.settle(session)  # the number may have changed between the two
            raise

    def _is_ready(self, session: Any) -> bool:
        if session.run(self._without_value).size:
            return False
        return self._first.are_complete(session) and self._stepper.is_open(session)
