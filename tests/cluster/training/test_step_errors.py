"""What fails while a graph is built is the job's, and final; what another attempt may not meet passes as it is."""

import pytest

from cluster.errors import JobError, TrainingError
from cluster.job import Job
from cluster.runtime.tf_compat import tf
from cluster.training.step_errors import explain_building
from cluster.variables.partition_count import PartitionCountChanged

JOB = Job("job.py", print, print, print)


def invalid() -> Exception:
    error: Exception = tf.errors.InvalidArgumentError(None, None, "no such shape")
    return error


@pytest.mark.parametrize("error", [ValueError("x"), TypeError("x"), KeyError("x"), AttributeError("x"), invalid()])
def test_an_error_of_the_graph_is_the_jobs(error: Exception) -> None:
    with pytest.raises(JobError, match=rf"^job\.py: {type(error).__name__}: "), explain_building(JOB):
        raise error


@pytest.mark.parametrize(
    "error",
    [
        OSError("no disk"),
        TimeoutError("nobody answers"),
        MemoryError(),
        tf.errors.UnavailableError(None, None, "gone"),
        tf.errors.FailedPreconditionError(None, None, "a server has no value"),
        PartitionCountChanged(),
        TrainingError("worker:1: differs"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_the_cluster_or_the_system_passes(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, explain_building(JOB):
        raise error
    assert caught.value is error


def test_an_error_that_followed_one_in_the_jobs_file_has_its_line() -> None:
    error = KeyError("second")  # raised outside the file, as by the end of a context
    try:
        int("first")
    except ValueError as first:
        error.__context__ = first
    told = Job(__file__, print, print, print).blamed(error)
    assert told.startswith(f"{__file__}:") and told.endswith("KeyError: 'second', in `int(\"first\")`")
