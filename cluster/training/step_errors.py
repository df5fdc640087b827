"""Explain an error of building a graph or of a step: name the job's line, or the number that is not finite.

An explained error of the job is not retried. Errors that may not occur in another attempt are raised unchanged: errors
of the system, of memory, of other tasks.
"""

import builtins
import contextlib
import re
from typing import Any, Iterator, Optional

from cluster import towers
from cluster.errors import JobError, NonFiniteError
from cluster.job import Job
from cluster.runtime.code_lines import line_that_made, line_that_raised, quote_line
from cluster.runtime.devices import worker_device
from cluster.runtime.tf_compat import tf
from cluster.runtime.tf_errors import line_of, raise_only_the_cause
from cluster.task import Task
from cluster.updates import nan_guard

_OF_CODE = (
    ValueError, TypeError, LookupError, AttributeError, NameError, ArithmeticError, AssertionError, NotImplementedError,
)  # fmt: skip
_PYTHONS = re.compile(r"^((\w+): .*)\nTraceback \(most recent call last\):", re.MULTILINE)


@contextlib.contextmanager
def explain_building(job: Job) -> Iterator[None]:
    """Inside this context, turn an error in building the graph into a ``JobError``, since every attempt would fail.

    Raises:
      JobError: the graph cannot be built.
    """
    try:
        yield
    except (*_OF_CODE, tf.errors.InvalidArgumentError) as error:
        raise JobError(job.blamed(error)) from error


@contextlib.contextmanager
def explain_errors(job: Job, task: Task, step: Optional[int], graph: Any) -> Iterator[None]:
    """Inside this context, turn an error of the step after ``step`` into an error that a person can act on.

    Raises:
      JobError: the job's own code is the cause.
      NonFiniteError: a loss or gradient is not a finite number.
    """
    try:
        with raise_only_the_cause():
            yield
    except tf.errors.OutOfRangeError as error:
        raise JobError(
            f"{job.place('inputs')}: the dataset of inputs ended after step {step}, expected one that"
            " lasts until the last step; add .repeat() to it"
        ) from error
    except tf.errors.OpError as error:
        reason = nan_guard.reason(error)
        if reason is not None:
            raise NonFiniteError(
                f"{task.name}: {reason} in step {step}, which was not applied;"
                " lower the learning rate, set train.clip_norm, or set train.on_nan to ignore"
            ) from error
        indivisible = towers.indivisible(error)
        if indivisible is not None:
            raise JobError(f"{job.place('inputs')}: {indivisible}") from error
        explained = _of_python(job, error) or _of_operation(job, task, error, graph)
        if explained is None:
            raise
        raise JobError(explained) from error


def _of_python(job: Job, error: Any) -> Optional[str]:
    """Return what is wrong in Python that the session ran, as of a generator; None if it did not raise the error."""
    found = _PYTHONS.search(str(error.message))
    kind = getattr(builtins, found.group(2), None) if found else None
    if found is None or not (isinstance(kind, type) and issubclass(kind, _OF_CODE)):
        return None
    place = line_that_raised(job.path, error) or job.place("inputs")
    return f"{place}: {found.group(1)}{quote_line(place)}"


def _of_operation(job: Job, task: Task, error: Any, graph: Any) -> Optional[str]:
    """Return what is wrong with an operation that the job made; None if another attempt may not meet it."""
    place = None
    if isinstance(error, tf.errors.InvalidArgumentError):
        place = line_that_made(job.path, error, graph)
    elif isinstance(error, tf.errors.FailedPreconditionError):  # another task's state may be gone with that task
        place = line_that_made(job.path, error, graph, worker_device(task.role, task.index, ""))
    elif isinstance(error, tf.errors.UnimplementedError):
        place = line_that_made(job.path, error, graph) or job.path
    return f"{place}: {line_of(error)}{quote_line(place)}" if place else None
