"""What cannot mend itself is known by what a task left, and is told with what to do."""

from typing import List

import pytest

from launch.agent.tasks import exit_causes
from launch.agent.tasks.hopeless import judge

NO_TENSORFLOW = "ModuleNotFoundError: No module named 'tensorflow'"
SETUP = (
    "the tasks' Python has no tensorflow: let `launch setup` build an environment that has it (key setup), "
    "or name a Python that has it (key python)"
)
OWN = "install it there, add it to the lock of the key setup, or put your own module beside the program"


@pytest.mark.parametrize(
    ("code", "cause", "lines", "advice"),
    [
        (1, NO_TENSORFLOW, [], SETUP),
        (1, f"exit code 1; its last line: {NO_TENSORFLOW}", [], SETUP),
        (1, "jobs/a.py:3: ModuleNotFoundError: No module named 'tensorflow.compat'", [], SETUP),
        (1, "ModuleNotFoundError: No module named 'models.resnet'", [], f"the tasks' Python has no models: {OWN}"),
        (1, "ImportError: libcublas.so.10.0: cannot open shared object file: No such file or directory", [], ""),
        (1, "exit code 1; its last line: SyntaxError: invalid syntax", [], ""),
        (1, "jobs/a.py:3: IndentationError: unexpected indent", [], ""),
        (127, "exit code 127", ["sh: 1: nvidia-smy: not found"],
         "install the program on this host, or write its path into command"),
        (126, "exit code 126", ["./train.sh: Permission denied"],
         "install the program on this host, or write its path into command"),
    ],
)  # fmt: skip
def test_what_no_attempt_mends_is_told_with_what_to_do(code: int, cause: str, lines: List[str], advice: str) -> None:
    assert judge(code, cause, lines) == advice


@pytest.mark.parametrize(
    ("error", "advice"),
    [("ImportError: cannot import name 'flags'", ""), ("SyntaxError: invalid syntax", ""), (NO_TENSORFLOW, SETUP)],
)
def test_an_error_in_a_log_is_known_in_the_words_of_its_cause(error: str, advice: str) -> None:
    lines = ["Traceback (most recent call last):", '  File "train.py", line 3, in <module>', error, "step 9"]
    assert judge(1, exit_causes.judge(1, None, lines).cause, lines) == advice


@pytest.mark.parametrize(
    ("code", "cause", "lines"),
    [
        (1, "ValueError: no such column", []),
        (1, "exit code 1; its last line: it said ImportError: x", []),
        (-9, f"killed by SIGKILL; its last line: {NO_TENSORFLOW}", [NO_TENSORFLOW]),
        (0, f"exit code 0; its last line: {NO_TENSORFLOW}", []),
        (127, "exit code 127; its last line: step 9", ["step 9"]),
        (1, "exit code 1; its last line: sh: 1: a: not found", ["sh: 1: a: not found"]),
    ],
)
def test_what_another_attempt_may_mend_is_tried_again(code: int, cause: str, lines: List[str]) -> None:
    assert judge(code, cause, lines) is None
