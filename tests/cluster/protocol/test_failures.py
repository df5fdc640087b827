"""A failure's kind follows from the class of its error; words decide for errors of others only."""

import errno
import os
from typing import Any, Dict, List, Optional, Tuple, Type

import pytest

from cluster.errors import CheckpointError, ClusterError, JobError, NonFiniteError, TaskError, TrainingError
from cluster.protocol.failure_kinds import FOREIGN, KINDS, Foreign, kind_in_log, kind_of, missing_module
from cluster.protocol.outcome import Outcome

# As their makers write them: at the end of a log, or as the text of an exception.
REAL: Dict[Tuple[str, str], List[str]] = {
    ("Python", "out-of-memory"): ["MemoryError", "MemoryError: Unable to allocate 8.00 GiB for an array"],
    ("TensorFlow", "out-of-memory"): [
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: 2 root error(s) found."
    ],
    ("TensorFlow's allocator", "out-of-memory"): [
        "W tensorflow/core/framework/op_kernel.cc:1651] OP_REQUIRES failed at conv_ops.cc:501 : Resource exhausted: "
        "OOM when allocating tensor with shape[64,112,112,64] and type float on "
        "/job:worker/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
    ],
    ("CUDA", "out-of-memory"): [
        "E tensorflow/stream_executor/cuda/cuda_driver.cc:828] failed to allocate 15.75G (16914055168 bytes) from "
        "device: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
    ],
    ("C++", "out-of-memory"): ["terminate called after throwing an instance of 'std::bad_alloc'"],
    ("the C library", "out-of-memory"): ["OSError: [Errno 12] Cannot allocate memory"],
    ("TensorFlow", "lost-connection"): [
        "tensorflow.python.framework.errors_impl.UnavailableError: Socket closed",
        "tensorflow.python.framework.errors_impl.AbortedError: Session 54f5c1a9 was not found.",
        "tensorflow.python.framework.errors_impl.DeadlineExceededError: Deadline Exceeded",
    ],
    ("Python", "lost-connection"): [
        "TimeoutError: [Errno 110] Connection timed out",
        "ConnectionError: the server closed the connection",
        "ConnectionResetError: [Errno 104] Connection reset by peer",
        "ConnectionRefusedError: [Errno 111] Connection refused",
        "ConnectionAbortedError: [Errno 103] Software caused connection abort",
        "BrokenPipeError: [Errno 32] Broken pipe",
    ],
    ("PyTorch", "lost-connection"): [
        "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:31210",
        "RuntimeError: [enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:446] . Read error "
        "[10.0.0.2]:31210: Connection reset by peer",
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1275, remote process exited or there "
        "was a network error, NCCL version 2.18.5",
    ],
}


class UnavailableError(Exception):
    """As TensorFlow's, which this test does not load."""


class Derived(UnavailableError):
    """A library's own error, of the same meaning."""


@pytest.mark.parametrize("row", FOREIGN, ids=lambda row: f"{row.origin}: {row.kind}")
def test_each_row_of_foreign_errors_is_known_by_real_messages(row: Foreign) -> None:
    messages = REAL[row.origin, row.kind]
    assert [kind_in_log(message) for message in messages] == [row.kind] * len(messages)
    assert all(any(name in message for message in messages) for name in row.classes)
    assert row.words is None or all(map(row.words.search, messages))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (CheckpointError("x"), "checkpoint"),
        (NonFiniteError("x"), "non-finite"),
        (JobError("x"), "exception"),
        (TaskError("x"), "exception"),
        (TrainingError("x"), "exception"),
        (ValueError("no such column"), "exception"),
        (KeyError(), "exception"),
        (UnavailableError("Socket closed"), "lost-connection"),
        (Derived("Socket closed"), "lost-connection"),
        (TimeoutError("waited 600 s for ps:0 at a:2222"), "lost-connection"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), "lost-connection"),
        (MemoryError(), "out-of-memory"),
        (RuntimeError("failed to allocate 9 bytes: CUDA_ERROR_OUT_OF_MEMORY"), "out-of-memory"),
        (OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)), "out-of-memory"),
    ],
)
def test_an_error_has_the_kind_of_its_class(error: BaseException, kind: str) -> None:
    assert kind_of(error) == kind and kind in KINDS


def because(error: Exception, cause: Exception) -> Exception:
    try:
        raise error from cause
    except Exception as raised:
        return raised


def test_an_error_of_a_job_has_the_kind_of_its_cause_only_for_want_of_memory() -> None:
    assert kind_of(because(JobError("job.py:3: x"), MemoryError())) == "out-of-memory"
    assert kind_of(because(JobError("job.py:3: x"), ConnectionResetError())) == "exception"
    assert kind_of(because(CheckpointError("x"), MemoryError())) == "checkpoint"


def test_the_module_that_python_lacks_is_named_by_its_error() -> None:
    lacking = ModuleNotFoundError("No module named 'models.resnet'", name="models.resnet")
    found = [
        missing_module(error) for error in (lacking, because(JobError("x"), lacking), JobError("x"), KeyError("x"))
    ]
    assert found == ["models.resnet", "models.resnet", None, None]


@pytest.mark.parametrize("error", [CheckpointError, NonFiniteError])
def test_in_a_log_an_error_of_ours_is_known_by_its_class(error: Type[Any]) -> None:
    assert kind_in_log(f"cluster.errors.{error.__name__}: some words") == error.kind


@pytest.mark.parametrize(
    "text", ["the loss is not a finite number", "checkpoint /c/model-9: expected others", "step 9"]
)
def test_in_a_log_no_sentence_of_ours_means_anything(text: str) -> None:
    assert kind_in_log(text) is None


def subclasses(kind: Type[Exception]) -> List[Type[Exception]]:
    return [kind, *(each for below in kind.__subclasses__() for each in subclasses(below))]


@pytest.mark.parametrize("text", [message for messages in REAL.values() for message in messages])
def test_a_sentence_of_ours_that_quotes_foreign_words_keeps_its_kind(text: str) -> None:
    own = [error for error in subclasses(ClusterError) if error.__init__ is Exception.__init__]
    assert own and [kind_of(error(text)) for error in own] == [kind_of(error("other words")) for error in own]


def ending(error: BaseException) -> Tuple[Optional[str], bool]:
    outcome = Outcome.from_exception(error)
    return outcome.kind, outcome.retry


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (NonFiniteError("x"), ("non-finite", False)),
        (ImportError("cannot import name 'flags'"), ("exception", False)),
        (ModuleNotFoundError("No module named 'x'", name="x"), ("exception", False)),
        (SyntaxError("invalid syntax"), ("exception", False)),
        (IndentationError("unexpected indent"), ("exception", False)),
        (ValueError("x"), ("exception", True)),
        (UnavailableError("x"), ("lost-connection", True)),
    ],
)
def test_an_outcome_has_the_kind_of_its_error_and_whether_a_retry_may_help(
    error: BaseException, expected: Tuple[str, bool]
) -> None:
    assert ending(error) == expected
