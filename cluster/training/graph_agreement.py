"""Check, before the first step, that all workers have built the same variables.

A worker may look for a variable where the other workers did not put it, or pack it with other variables. Such a worker
would wait for ever, or train another model than the others. So the chief leaves a listing of its variables on ``ps:0``,
and every other worker compares its own with that.
"""

import hashlib
from typing import Any, List, Optional, Sequence, Tuple

from cluster.errors import TrainingError
from cluster.runtime.devices import ps_device
from cluster.runtime.tf_compat import tf
from cluster.runtime.waiting import wait_for
from cluster.task import Task
from cluster.variables.buckets import Bucket
from cluster.variables.masters import plain_name

NOTHING = "(nothing more)"


def listing(variables: Sequence[Any], buckets: Sequence[Bucket] = (), tables: Sequence[Any] = ()) -> List[str]:
    """Return one line each for the runtime; every variable, by name, with type, shape, device; buckets; tables."""
    described = [_line(variable) for variable in sorted(variables, key=lambda variable: str(variable.op.name))]
    packed = [f"{bucket.name} of {' '.join(bucket.names)}" for bucket in buckets]
    return [f"TensorFlow {tf.__version__}", *described, *packed, *map(str, tables)]


def _line(variable: Any) -> str:
    shape = "x".join(map(str, variable.shape.as_list())) if variable.shape.ndims is not None else "?"
    return f"{plain_name(variable)} {variable.dtype.base_dtype.name}[{shape}] on {variable.device}"


def digest(lines: Sequence[str]) -> str:
    """Return a short text that is equal for equal listings only."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def first_difference(ours: Sequence[str], theirs: Sequence[str]) -> Optional[Tuple[str, str]]:
    """Return the first line that differs, of each side; None if they are equal."""
    for index in range(max(len(ours), len(theirs))):
        pair = tuple(lines[index] if index < len(lines) else NOTHING for lines in (ours, theirs))
        if pair[0] != pair[1]:
            return pair[0], pair[1]
    return None


class GraphAgreement:
    """The chief's listing on ``ps:0``, in the graph of one worker.

    Make it once all variables are in the graph. Workers may settle it any number of times: a task or a parameter
    server that restarts settles it again.
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
        """Write the chief's listing; on another worker, wait for it and compare.

        Raises:
          TrainingError: this worker's variables or its TensorFlow differ from the chief's.
          TimeoutError: the chief left nothing in time.
        """
        if self._task.is_chief:
            session.run(self._leave, {self._text: [digest(self._lines), "\n".join(self._lines)]})
            return
        wait_for("the chief's list of variables", lambda: session.run(self._missing) == 0)
        if session.run(self._digest).decode() != digest(self._lines):
            self._refuse(session.run(self._listing).decode().split("\n"))

    def _refuse(self, chiefs: Sequence[str]) -> None:
        chief, own = first_difference(chiefs, self._lines) or (NOTHING, NOTHING)
        raise TrainingError(
            f"{self._task.name} does not agree with the chief: expected {chief!r} as there, found {own!r};"
            " give every task the same job, args and train settings, and the same TensorFlow;"
            " a job makes its variables in the same order everywhere"
        )
