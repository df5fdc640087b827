"""A failure's kind follows from the class of its error; words decide for errors of others only."""

import errno
import os
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple, Type

import pytest

from cluster.errors import CheckpointError, ClusterError, JobError, NonFiniteError, TaskError, TrainingError
from cluster.protocol.failure_kinds import FOREIGN, KINDS, Foreign, author_frames, kind_in_log, kind_of, missing_module
from cluster.protocol.outcome import Outcome, Reporter

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


def because(error: Exception, cause: BaseException) -> Exception:
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


JOB = """import json
def price(x):
    return json.loads(x)
def model(x):
    return price(x)
"""


def raised_in(path: Path, text: str, call: Any) -> BaseException:
    """The error of a call of the functions in a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    functions: Dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), functions)
    try:
        call(functions)
    except Exception as error:
        here: Any = error.__traceback__
        return error.with_traceback(here.tb_next.tb_next)  # without the frames of this file
    raise AssertionError("nothing was raised")


def test_of_a_traceback_the_authors_own_frames_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "job.py"
    error = raised_in(path, JOB, lambda job: job["model"]("{"))
    frames = [
        f'  File "{path}", line 5, in model\n    return price(x)',
        f'  File "{path}", line 3, in price\n    return json.loads(x)',
    ]  # and none of json
    assert author_frames(error) == frames
    assert author_frames(because(JobError("x"), error).with_traceback(None)) == frames
    assert Outcome.from_exception(error).frames == "\n".join(frames)


def test_an_error_that_no_line_of_the_author_has_raised_has_no_frames(tmp_path: Path) -> None:
    package = raised_in(tmp_path / "site-packages" / "p.py", JOB, lambda job: job["model"]("{"))
    assert author_frames(package) == author_frames(JobError("x")) == []
    assert Outcome.from_exception(package).frames is None  # its whole traceback is needed
    assert Outcome.from_exception(JobError("x")).frames == ""  # it explains itself


def test_a_frame_names_the_authors_file_and_the_last_ten_of_a_recursion_are_enough(tmp_path: Path) -> None:
    path = tmp_path / "task" / "work" / "job.py"
    error = raised_in(
        path, "def model(x):\n    return model(x + 1) if x < 50 else 1 / 0\n", lambda job: job["model"](0)
    )
    environ = {"LAUNCH_TASK_DIR": str(tmp_path / "task"), "LAUNCH_JOB_DIR": "/home/me"}
    frames = str(Reporter.from_environment(environ).failure(error).frames)
    assert frames.count('File "/home/me/job.py", line 2, in model') == frames.count("File") == 10
