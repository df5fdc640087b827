"""A program's error is found in its log, whatever it and others write after it."""

from itertools import permutations
from pathlib import Path
from typing import Dict, List

import pytest

from launch.agent.endings.exit_causes import MOST_LINES, judge
from launch.agent.endings.log_errors import LONGEST, MOST_AFTER, SEARCHED, error_in

ENDINGS = Path(__file__).parent / "logs"  # what programs have written, the last lines of their logs
FOUND: Dict[str, str] = {
    "tensorflow": "InvalidArgumentError: Input to reshape is a tensor with 3 values, but the requested shape has 4",
    "two_roots": "ResourceExhaustedError: 2 root error(s) found. (0) Resource exhausted: OOM when allocating "
    "tensor with shape[9000,9000] and type float on /job:worker/replica:0/task:0/device:GPU:0",
    "connection": "UnavailableError: From /job:ps/replica:0/task:1: Socket closed",
    "chained": "ValueError: no such",
    "chained_3_13": "ValueError: no such",
    "group": "ExceptionGroup: two shards failed (3 sub-exceptions), first: ValueError: 1",
    "notes": "ValueError: wrong shape",
    "thread": "OSError: disk of shard 2",
    "progress_bar": "RuntimeError: boom",
    "syntax": "SyntaxError: invalid syntax",
    "flags": "IllegalFlagValueError: flag --job_name=boss: value should be one of <ps|worker>",
    "argparse": "args.py: error: the following arguments are required: --n",
    "fault_handler": "Fatal Python error: Segmentation fault",
    "cpp_check": "2026-11-23 02:24:52.501322: F tensorflow/core/framework/tensor_shape.cc:405] "
    "Check failed: 0 <= new_num_elements (0 vs. -1)",
    "abseil_check": "F0000 00:00:1732328692.501322    4242 tensor_shape.cc:405] "
    "Check failed: 0 <= new_num_elements (0 vs. -1)",
    "thrown": "terminate called after throwing an instance of 'std::runtime_error' what():  queue closed",
    "destructors": "Stale: the shard moved",
    "graph_execution": "InvalidArgumentError: Graph execution error: indices[0,1] = 9 is not in [0, 4)",
    "graph_node": "InvalidArgumentError: Graph execution error: indices[0,1] = 9 is not in [0, 4)",
    "user_code": "ValueError: Cannot reshape a tensor with 2 elements to shape [4] (4 elements) for '{{node Reshape}} "
    "= Reshape[T=DT_FLOAT, Tshape=DT_INT32](GatherV2, Reshape/shape)' with input shapes: [2], [1] and with "
    "input tensors computed as partial shapes: input[1] = [4].",
    "rank": "RuntimeError: The size of tensor a (32) must match the size of tensor b (31) at non-singleton dimension 0",
    "without_text": "ValueError",
    "shell": "run.sh: line 2:  1515 Segmentation fault      (core dumped) python train.py",
}
NOISE = (
    "2026-11-23 02:24:52.501322: W tensorflow/core/kernels/queue_base.cc:277] _0_input: Skipping cancelled dequeue",
    'E1123 10:00:00.123456789    1234 chttp2.cc:40] {"created":"@1700","description":"Socket closed"}',
    "WARNING:tensorflow:Session closed",
    "INFO: cleaning up",
    "WARNING: Logging before flag parsing goes to stderr.",
    "Epoch 3:  45%|####5     | 45/100 [00:01<00:02, 30.1it/s]",
    "step 900, loss: 0.25",
    "loss: 0.25",
    "}",
    "Exception ignored in: <function Broken.__del__ at 0x7efcc1e04d60>\nTraceback (most recent call last):\n"
    '  File "chained.py", line 4, in __del__\nRuntimeError: too late',
    "Error in atexit._run_exitfuncs:\nTraceback (most recent call last):\n"
    '  File "a.py", line 4, in leave\nKeyError: 1\n'
    "During handling of the above exception, another exception occurred:\n"
    'Traceback (most recent call last):\n  File "a.py", line 6, in leave\nOSError: too late',
)


def ending(name: str) -> List[str]:
    return [line.rstrip() for line in (ENDINGS / f"{name}.txt").read_text().splitlines() if line.strip()]


def test_every_ending_has_its_error() -> None:
    assert {path.stem for path in ENDINGS.glob("*.txt")} == set(FOUND)


@pytest.mark.parametrize("name", sorted(FOUND))
def test_the_error_is_found(name: str) -> None:
    error = error_in(ending(name))
    assert error is not None and error.text == FOUND[name]


@pytest.mark.parametrize("name", sorted(FOUND))
def test_what_is_written_around_an_error_does_not_hide_it(name: str) -> None:
    for one, other in permutations(NOISE, 2):
        noise = [*one.splitlines(), *other.splitlines()]
        error = error_in([*noise, *ending(name), *noise])
        assert error is not None and error.text == FOUND[name], noise


@pytest.mark.parametrize("earlier", sorted(FOUND))
def test_of_two_errors_the_last_counts(earlier: str) -> None:
    error = error_in([*ending(earlier), *ending("tensorflow")])
    assert error is not None and error.text == FOUND["tensorflow"]


def test_a_program_that_wrote_much_after_an_error_has_survived_it() -> None:
    lines = [*ending("progress_bar"), *(f"step {number}" for number in range(MOST_AFTER))]
    assert error_in(lines) is not None
    assert error_in([*lines, "step 20"]) is None


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["step 4", "loss: 0.3"],
        ["Traceback (most recent call last):"],
        ["Traceback (most recent call last):", '  File "a.py", line 1, in <module>'],
        ["UnavailableError: said, but not raised"],
        ["train.py: error: said below no usage"],
        ["Exception ignored in: <x>", "Traceback (most recent call last):", "RuntimeError: x"],
    ],
)
def test_without_an_error_none_is_found(lines: List[str]) -> None:
    assert error_in(lines) is None


def test_an_error_is_short_and_found_in_few_lines() -> None:
    trace = ["Traceback (most recent call last):", "ValueError: " + "x" * 1000]
    error = error_in(trace)
    assert error is not None and len(error.text) == LONGEST
    assert error_in([*trace, *["  at"] * SEARCHED]) is None


@pytest.mark.parametrize(
    ("code", "name", "kind", "cause"),
    [
        (1, "connection", "lost-connection", f"exit code 1; its error: {FOUND['connection']}"),
        (1, "two_roots", "out-of-memory", f"exit code 1; its error: {FOUND['two_roots']}"),
        (1, "chained", "exception", "exit code 1; its error: ValueError: no such"),
        (2, "argparse", "exit", f"exit code 2; its error: {FOUND['argparse']}"),
        (-6, "cpp_check", "signal", f"killed by SIGABRT; its error: {FOUND['cpp_check']}"),
        (-11, "fault_handler", "signal", f"killed by SIGSEGV; its error: {FOUND['fault_handler']}"),
        (-9, "chained", "signal", "killed by SIGKILL; its last line: RuntimeError: too late"),
        (0, "notes", "exit", "exit code 0; its last line: while reading shard 3"),
    ],
)
def test_the_error_is_the_cause_of_an_end_that_the_program_made(code: int, name: str, kind: str, cause: str) -> None:
    assert judge(code, None, ending(name))[:2] == (kind, cause)


def test_endings_are_longer_than_what_is_shown_of_a_log() -> None:
    assert len(ending("tensorflow")) > MOST_LINES and FOUND["tensorflow"] not in ending("tensorflow")[-MOST_LINES:]
