"""Join a run, at its beginning or after a restart: only the chief gives variables their values.

state that the chief finds                          action of the chief
every variable has a value, and workers may join    joins the others; changes nothing
a step that is half applied                         continues as if a variable had no value
any other state, if there is a checkpoint           restores the newest one, and lets workers join
any other state                                     gives first values, and lets workers join

In a run with a warm start, a variable on ``ps:0`` records whether the first values are complete. Before the warm start
sets the variables, they already have other values. Without the record, workers would begin too early in asynchronous
training. A restarted chief would mistake half a warm start for a whole one.

Before the first step all workers must have built the same variables. A worker with other variables may look for a
variable on the wrong server, or pack it differently. It would wait for ever, or train another model than the others. So
the chief writes a listing of its variables to ``ps:0``, and every other worker compares its own listing with the
chief's.
"""

import hashlib
from itertools import zip_longest
from typing import Any, List, Optional, Sequence, Tuple

from cluster.checkpoints.saver import Checkpoints
from cluster.checkpoints.warm_start import WarmLoader
from cluster.errors import TrainingError
from cluster.runtime.devices import ps_device
from cluster.runtime.server_state import kept
from cluster.runtime.tf_compat import tf
from cluster.runtime.waiting import wait_for
from cluster.steps.base_worker import TornStepError
from cluster.steps.replica import Replica
from cluster.task import Task, WarmStart
from cluster.training.callbacks import Callback
from cluster.training.reporting import Activity
from cluster.training.run_steps import LastStep
from cluster.variables.layout import Bucket
from cluster.variables.masters import SCOPE, plain_name
from cluster.variables.partition_count import PartitionCount


class FirstValues:
    """The first values of a run's variables, in the graph of one worker.

    Args:
      host: the device of the worker's memory.
      warm_start: the settings of the run's warm start; None for a run without one.

    ``state``: variables that must have a value before a worker can join.
    ``are_the_chiefs``: whether the first values on the servers equal those of the chief's own variables.
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
            self._loader = WarmLoader(warm_start, self._replica.of_model, self._replica.warm_rows(), host)

    def are_complete(self, session: Any) -> bool:
        """Return whether all first values are written. Call this method only when ``state`` has values."""
        return all(session.run(self.state))

    def begin(self, session: Any) -> None:
        """As the chief, keep workers from joining until ``end`` is called."""
        if self.state:
            session.run(self._begin)

    def end(self, session: Any) -> None:
        """As the chief, let workers join, once every variable has its value."""
        if self.state:
            session.run(self._end)

    def give(self, session: Any) -> None:
        """As the chief, give all variables their first values.

        Raises:
          CheckpointError: the checkpoint of the warm start is missing, or does not fit the model.
        """
        for given in self._replica.first_values:
            session.run(given)
        if self._loader is not None:
            print(self._loader.load(session), flush=True)
        for given in self._replica.first_slots:  # after the warm start: some copy the model's values
            session.run(given)


NOTHING = "(nothing more)"


def listing(variables: Sequence[Any], buckets: Sequence[Bucket] = (), tables: Sequence[Any] = ()) -> List[str]:
    """Return lines that describe a graph: TensorFlow's version, each variable by name, each bucket, and each table.

    The line of a variable has its name, type, shape and device.
    """
    described = [_listed(variable) for variable in sorted(variables, key=lambda variable: str(variable.op.name))]
    packed = [f"{bucket.name} of {' '.join(bucket.names)}" for bucket in buckets]
    return [f"TensorFlow {tf.__version__}", *described, *packed, *map(str, tables)]


def _listed(variable: Any) -> str:
    shape = "x".join(map(str, variable.shape.as_list())) if variable.shape.ndims is not None else "?"
    return f"{plain_name(variable)} {variable.dtype.base_dtype.name}[{shape}] on {variable.device}"


def digest_of_listing(lines: Sequence[str]) -> str:
    """Return a digest of ``lines``: a short text that differs for different lines."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def first_difference(ours: Sequence[str], theirs: Sequence[str]) -> Optional[Tuple[str, str]]:
    """Return the first two corresponding lines of ``ours`` and ``theirs`` that differ; None if all lines are equal."""
    return next((pair for pair in zip_longest(ours, theirs, fillvalue=NOTHING) if pair[0] != pair[1]), None)


class GraphAgreement:
    """The check that one worker's variables equal those in the chief's listing on ``ps:0``.

    Create it once all variables are in the graph. Workers may call ``settle`` any number of times: they call it again
    after each restart of a task or a parameter server.
    """

    def __init__(
        self, task: Task, variables: Sequence[Any], buckets: Sequence[Bucket] = (), tables: Sequence[Any] = ()
    ):
        self._task = task
        self._lines = listing(variables, buckets, tables)
        with tf.device(ps_device(0)), tf.variable_scope("agreement"):
            # A resource: what one session reads does not change while another writes it.
            left = tf.get_variable(
                "listing", [2], tf.string, tf.zeros_initializer(), trainable=False, collections=[], use_resource=True
            )
            self._text = tf.placeholder(tf.string, [2])
            self._leave = left.assign(self._text)
            self._missing = tf.size(tf.report_uninitialized_variables([left]))
            self._digest, self._listing = left.read_value()[0], left.read_value()[1]

    def settle(self, session: Any) -> None:
        """As the chief, write this worker's listing; as another worker, wait for the chief's and compare.

        Raises:
          TrainingError: this worker's variables or its TensorFlow differ from the chief's.
          TimeoutError: the chief wrote no listing in time.
        """
        if self._task.is_chief:
            session.run(self._leave, {self._text: [digest_of_listing(self._lines), "\n".join(self._lines)]})
            return
        wait_for("the chief's list of variables", lambda: session.run(self._missing) == 0)
        if session.run(self._digest).decode() != digest_of_listing(self._lines):
            self._refuse(session.run(self._listing).decode().split("\n"))

    def _refuse(self, chiefs: Sequence[str]) -> None:
        chief, own = first_difference(chiefs, self._lines) or (NOTHING, NOTHING)
        raise TrainingError(
            f"{self._task.name} does not agree with the chief: expected {chief!r} as on the chief, found {own!r};"
            " give every task the same job, args, train settings and version of TensorFlow;"
            " the job must create its variables in the same order on every task"
        )


class Joining:
    """The operations with which one worker joins a run, in its graph.

    Args:
      last: the step at which training ends.
      opening: the callbacks that prepare the servers before workers may join.
      checkpoints: the chief's checkpoints; None on another worker.
      first: gives a new run its first values.
    """

    def __init__(
        self,
        task: Task,
        replica: Replica,
        partition_count: PartitionCount,
        last: LastStep,
        opening: Sequence[Callback],
        checkpoints: Optional[Checkpoints],
        first: FirstValues,
    ):
        self._last, self._replica, self._stepper = last, replica, replica.stepper
        self._partition_count, self._opening, self._checkpoints = partition_count, opening, checkpoints
        self._first = first
        extended = [variable for each in replica.extensions for variable in each.needed]
        needed = [*replica.variables, *extended, *replica.stepper.needed, *first.state]
        self._without_value = tf.report_uninitialized_variables(needed)
        listed = [thing for each in replica.extensions for thing in each.listed]
        self._agreement = GraphAgreement(task, replica.agreed, replica.buckets, listed)

    def join(self, session: Any, activity: Activity) -> int:
        """Join the other workers, and return the global step.

        Raises:
          TrainingError: this worker's variables differ from the chief's, or no checkpoint can be read.
          TimeoutError: the chief did not answer in time.
        """
        self._settle(session)
        shares = self._replica.model.parts.shares
        if shares is not None:
            shares.settle(session)
        if self._checkpoints is not None:
            return self._join_as_chief(session, activity, self._checkpoints)
        activity.note("waits for the chief to give the variables their values")
        wait_for("the chief to give the variables their values", lambda: self._is_ready(session))
        self._last.learn(session)
        return self._stepper.join(session, self._last.step)

    def _join_as_chief(self, session: Any, activity: Activity, checkpoints: Checkpoints) -> int:
        for each in self._opening:
            each.open(session)
        checkpoints.open()
        if self._is_ready(session):
            checkpoints.adopt()
            try:
                return self._stepper.join(session, self._last.step)
            except TornStepError:
                print(
                    "the chief's previous process ended while it applied a step; going back to a checkpoint", flush=True
                )
        self._stepper.close(session)
        activity.note("gives the variables their values")
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
