"""Explain an error of a step: by the job's line that caused it, or by the number that is not finite."""

import contextlib
from typing import Any, Iterator, Optional

from cluster import towers
from cluster.errors import JobError, NonFiniteError
from cluster.job import Job, quote_line
from cluster.runtime.tf_compat import tf
from cluster.runtime.tf_errors import line_of, raise_only_the_cause
from cluster.task import Task
from cluster.updates import nan_guard


@contextlib.contextmanager
def explain_errors(job: Job, task: Task, step: Optional[int], graph: Any) -> Iterator[None]:
    """Inside, raise an error of the step after ``step`` as what a person can act on.

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
    except tf.errors.InvalidArgumentError as error:
        reason = nan_guard.reason(error)
        if reason is not None:
            raise NonFiniteError(
                f"{task.name}: {reason} in step {step}, and it was not applied;"
                " lower the learning rate, set train.clip_norm, or set train.on_nan to ignore"
            ) from error
        indivisible = towers.indivisible(error)
        if indivisible is not None:
            raise JobError(f"{job.place('inputs')}: {indivisible}") from error
        place = job.line_that_made(error, graph)
        if place is None:
            raise
        raise JobError(f"{place}: {line_of(error)}{quote_line(place)}") from error
