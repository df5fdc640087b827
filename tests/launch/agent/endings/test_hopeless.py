"""A failure that no further attempt mends is known by what a task left, and comes with advice."""

from typing import List

import pytest

from cluster.errors import JobError
from cluster.protocol.outcome import Outcome
from launch.agent.endings import exit_causes
from launch.agent.endings.exit_causes import hopeless_advice

NO_TENSORFLOW = "ModuleNotFoundError: No module named 'tensorflow'"
SETUP = (
    "the tasks' Python has no tensorflow: let `launch setup` build an environment with this package (key setup), "
    "or name a Python with it (key python)"
)
OWN = "install the module there, add it to the lock of the key setup, or put your own module beside the program"
PROGRAM = "install the program on this host, or in the image, or write its path into command"
FROM_SHELLS = [
    (127, "sh: 1: nvidia-smy: not found"),
    (127, "bash: line 1: nvidia-smy: command not found"),
    (127, "/bin/sh: ./train.sh: No such file or directory"),
    (126, "./train.sh: Permission denied"),
    (126, "bash: ./train.sh: cannot execute binary file: Exec format error"),
]


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (NO_TENSORFLOW, SETUP),
        ("jobs/a.py:3: ModuleNotFoundError: No module named 'tensorflow.compat'", SETUP),
        ("ModuleNotFoundError: No module named 'models.resnet'", f"the tasks' Python has no models: {OWN}"),
        ("ImportError: libcublas.so.10.0: cannot open shared object file: No such file or directory", ""),
        ("SyntaxError: invalid syntax", ""),
        ("jobs/a.py:3: IndentationError: unexpected indent", ""),
        ("TabError: inconsistent use of tabs and spaces in indentation", ""),
    ],
)
def test_an_error_of_python_in_a_log_that_no_attempt_mends(error: str, advice: str) -> None:
    assert hopeless_advice(1, None, error, []) == advice


@pytest.mark.parametrize(("code", "line"), FROM_SHELLS)
def test_a_shell_that_has_no_such_program(code: int, line: str) -> None:
    assert hopeless_advice(code, None, line, [line]) == PROGRAM


def lacking(module: str) -> ModuleNotFoundError:
    return ModuleNotFoundError(f"No module named {module!r}", name=module)


def of_job(cause: Exception) -> JobError:
    try:
        raise JobError("jobs/a.py:3: some words") from cause
    except JobError as error:
        return error


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (lacking("tensorflow"), SETUP),
        (of_job(lacking("tensorflow.compat")), SETUP),
        (of_job(lacking("models.resnet")), f"the tasks' Python has no models: {OWN}"),
        (ImportError("libcublas.so.10.0: cannot open shared object file"), ""),
        (SyntaxError("invalid syntax"), ""),
        (of_job(IndentationError("unexpected indent")), ""),
        (JobError("the shapes do not fit"), ""),
    ],
)
def test_an_outcome_names_what_no_attempt_mends(error: Exception, advice: str) -> None:
    assert hopeless_advice(1, Outcome.from_exception(error), "", []) == advice


@pytest.mark.parametrize(
    ("error", "advice"),
    [("ImportError: cannot import name 'flags'", ""), ("SyntaxError: invalid syntax", ""), (NO_TENSORFLOW, SETUP)],
)
@pytest.mark.parametrize("above", [["Traceback (most recent call last):", '  File "train.py", line 3'], ["step 8"]])
def test_such_an_error_is_found_in_a_log_also_where_it_is_only_the_last_line(
    error: str, advice: str, above: List[str]
) -> None:
    ending = exit_causes.judge(1, None, [*above, error])
    assert not ending.retry and ending.cause.endswith(advice or error)


@pytest.mark.parametrize(
    ("code", "error", "lines"),
    [
        (1, "ValueError: no such column", []),
        (1, "it said ImportError: x", []),
        (-9, NO_TENSORFLOW, [NO_TENSORFLOW]),
        (0, NO_TENSORFLOW, []),
        (127, "step 9", ["step 9"]),
        (1, "sh: 1: a: not found", ["sh: 1: a: not found"]),
    ],
)
def test_what_another_attempt_may_mend_is_tried_again(code: int, error: str, lines: List[str]) -> None:
    assert hopeless_advice(code, None, error, lines) is None


def test_an_error_that_may_pass_is_tried_again_whatever_its_words() -> None:
    for words in ("no", NO_TENSORFLOW, "SyntaxError: invalid syntax"):
        assert hopeless_advice(1, Outcome.from_exception(RuntimeError(words)), "", [words]) is None
