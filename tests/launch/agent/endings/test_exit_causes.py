"""Why a process ended is told by what it left: its outcome, its exit code, its last lines, the kernel's word."""

import os
from dataclasses import replace
from pathlib import Path
from typing import List, Optional

import pytest

from cluster.errors import CheckpointError, JobError, NonFiniteError, TaskError, TrainingError
from cluster.protocol.outcome import Outcome
from launch.agent.endings.exit_causes import LONGEST, MOST_LINES, judge, last_lines
from launch.agent.supervision.incident import KINDS
from tests.support import ROOT

MISSING = "\n".join(
    (
        "Traceback (most recent call last):",
        '  File "train.py", line 31, in main',
        "    session.run(train)",
        "tensorflow.python.framework.errors_impl.NotFoundError: From /job:{role}/replica:0/task:0:",
        "{folder}/model.ckpt-0_temp_3b14b82bf1c84108808e7d1c1f8110ab; No such file or directory",
        "\t [[node save/SaveV2 (defined at train.py:31) ]]",
    )
)


@pytest.mark.parametrize("folder", ["logdir", "/home/me/" + "long/" * 60])
def test_a_file_that_a_ps_does_not_find_has_its_reason_in_the_cause(folder: str) -> None:
    ending = judge(1, None, MISSING.format(role="ps", folder=folder).splitlines())
    assert ending.cause.endswith(
        "; a ps reads and writes its part of a checkpoint on its own host: name a folder that all hosts share"
    )
    assert ending.error.startswith("NotFoundError: From /job:ps/") and "share" not in ending.error and ending.retry
    assert "share" not in judge(1, None, MISSING.format(role="worker", folder=folder).splitlines()).cause


OF_KERAS = """\
Traceback (most recent call last):
  File "train.py", line 30, in <module>
    model.fit(data, epochs=12, callbacks=callbacks)
tensorflow.python.framework.errors_impl.NotFoundError: Graph execution error:

Detected at node SaveV2 defined at (most recent call last):
  File "train.py", line 30, in <module>

  File "/opt/tf2/tf_keras/src/callbacks.py", line 1599, in _save_handler

ckpt/w-1_temp; No such file or directory
\t [[{{node SaveV2}}]]
Additional GRPC error information from remote target /job:%s/replica:0/task:0 while calling /RecvTensor:
:UNKNOWN:Error received from peer  {grpc_message:"ckpt/w-1_temp; No such file or directory\\n", grpc_status:5}
\t [[SaveV2/_7]] [Op:__inference_tf_function_save_1203]
"""
NOT_VALID = """\
Traceback (most recent call last):
  File "train.py", line 27, in main
    with supervisor.managed_session(server.target) as session:
ValueError: The passed save_path is not a valid checkpoint: logdir/model.ckpt-203
"""


def test_a_file_that_a_ps_of_tensorflow_2_does_not_find_has_its_reason_too() -> None:
    def cause(role: str) -> str:
        return judge(1, None, [line for line in (OF_KERAS % role).splitlines() if line]).cause

    found = "its error: NotFoundError: Graph execution error: ckpt/w-1_temp; No such file or directory"
    hint = "; a ps reads and writes its part of a checkpoint on its own host: name a folder that all hosts share"
    assert cause("ps").endswith(found + hint)
    assert cause("worker").endswith(found)


def test_a_checkpoint_without_values_on_this_host_has_a_hint_where_they_may_be() -> None:
    ending = judge(1, None, NOT_VALID.splitlines())
    assert ending.cause.endswith(
        "model.ckpt-203; its values are not on this host; if a ps of another host wrote them, name a folder that all "
        "hosts share"
    )
    assert ending.error.endswith("model.ckpt-203") and ending.retry


TRACE = "Traceback (most recent call last):"


def ended_by(error: BaseException) -> Outcome:
    """The outcome of a task that an exception ended."""
    return Outcome.from_exception(error, step=7)


OUR_ERRORS = [
    CheckpointError("the final checkpoint, step 9, cannot be written into /c: no space left"),
    CheckpointError("checkpoint /c/model-9: expected this job's variables, found others (x)"),
    CheckpointError("checkpoints on h1: expected a readable one, found only unreadable ones: /c/model-9 (cut short)"),
    NonFiniteError("worker:1: the loss is not a finite number in step 3, which was not applied"),
    JobError("jobs/mine.py:12: the shapes do not fit"),
    TaskError("TF_CONFIG: expected a task type among ps, worker, found 'boss'"),
    TrainingError("worker:1: lost a server after step 9, and launch verify cannot continue from a checkpoint"),
    TimeoutError("waited 600 s for ps:0 at a:2222; see the logs of the awaited tasks"),
    ModuleNotFoundError("No module named 'tensorflow'", name="tensorflow"),
]
OTHER_WORDS = [
    "plan B", "the final checkpoint, step 9", "the loss is not a finite number", "UnavailableError: Socket closed",
    "ModuleNotFoundError: No module named 'numpy'", "OOM when allocating tensor", "SyntaxError: invalid syntax",
    "std::bad_alloc", "sh: 1: train: not found", "exit code 1; its error: ImportError: x",
]  # fmt: skip


@pytest.mark.parametrize("words", OTHER_WORDS)
@pytest.mark.parametrize("error", OUR_ERRORS, ids=lambda error: type(error).__name__)
def test_other_words_of_our_own_error_change_no_decision(error: BaseException, words: str) -> None:
    outcome = ended_by(error)
    cause, reworded = str(outcome.cause), replace(outcome, cause=words)
    before, after = judge(1, outcome, []), judge(1, reworded, [])
    assert (after.kind, after.retry, after.cause) == (before.kind, before.retry, before.cause.replace(cause, words))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("no such column"), "exception"),
        (KeyError(), "exception"),
        (JobError("jobs/mine.py:12: the shapes do not fit"), "exception"),
        (TimeoutError("waited 600 s for ps:0 at a:2222"), "lost-connection"),
        (ConnectionRefusedError(111, "Connection refused"), "lost-connection"),
        (MemoryError(), "out-of-memory"),
        (OSError(12, "Cannot allocate memory"), "out-of-memory"),
        (OUR_ERRORS[0], "checkpoint"),
        (OUR_ERRORS[1], "checkpoint"),
        (OUR_ERRORS[2], "checkpoint"),
        (OUR_ERRORS[3], "non-finite"),
    ],
)
def test_the_error_in_an_outcome_has_its_kind_and_its_text_is_the_cause(error: BaseException, kind: str) -> None:
    outcome = ended_by(error)
    found = judge(1, outcome, [])
    assert (found.kind, found.cause, found.error) == (kind, outcome.cause, outcome.cause) and kind in KINDS


def test_an_outcome_without_a_kind_is_an_exception_where_it_has_a_traceback() -> None:
    kinds = [judge(1, Outcome(False, cause="x", traceback=trace), []).kind for trace in (TRACE, None)]
    assert kinds == ["exception", "exit"]


def test_an_outcome_comes_before_the_signal_that_ended_the_process_afterwards() -> None:
    assert judge(-9, ended_by(ValueError("x")), [], no_memory=True).kind == "exception"


def test_what_the_agent_found_wrong_with_an_outcome_is_no_exception() -> None:
    assert judge(0, Outcome(False, cause="its outcome cannot be read: x", kind="exit"), []).kind == "exit"


@pytest.mark.parametrize(
    ("code", "lines", "kind", "cause"),
    [
        (3, [], "exit", "exit code 3"),
        (0, ["bye"], "exit", "exit code 0; its last line: bye"),
        (-15, [], "signal", "killed by SIGTERM"),
        (-9, ["  step 4"], "signal", "killed by SIGKILL; its last line: step 4"),
        (-6, ["terminate called after throwing an instance of 'std::bad_alloc'", "  what():  std::bad_alloc"],
         "out-of-memory", "killed by SIGABRT; its error: terminate called after throwing an instance of "
         "'std::bad_alloc' what():  std::bad_alloc"),
        (1, [TRACE, '  File "a.py", line 1', "ValueError: x"], "exception",
         "exit code 1; its error: ValueError: x"),
        (1, [TRACE, "tensorflow.python.framework.errors_impl.UnavailableError: x"], "lost-connection", None),
        (1, ["UnavailableError: said, but not raised"], "exit", None),
    ],
)  # fmt: skip
def test_of_a_program_without_an_outcome_its_exit_and_its_last_lines_tell(
    code: int, lines: List[str], kind: str, cause: Optional[str]
) -> None:
    ending = judge(code, None, lines)
    assert ending.kind == kind and (cause is None or ending.cause == cause)


def test_a_sigkill_that_the_kernel_owns_up_to_is_want_of_memory() -> None:
    assert judge(-9, None, ["step 4"], no_memory=True)[:2] == (
        "out-of-memory", "killed by the kernel: out of memory (SIGKILL); its last line: step 4",
    )  # fmt: skip


def test_every_kind_that_is_found_is_one_that_is_documented() -> None:
    page = (ROOT / "docs" / "faults.md").read_text()
    assert [kind for kind in KINDS if f"| `{kind}` | {KINDS[kind]}" not in page] == []


# -- the last lines of a log


def test_the_last_lines_are_those_that_say_anything(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"one\n  two \xff\n\n   \n")
    assert last_lines(log) == ["one", "  two \ufffd"]


def test_long_lines_are_cut_and_a_long_log_is_not_read_whole(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with open(str(log), "wb") as file:
        os.ftruncate(file.fileno(), 1 << 35)  # sparse: to read it whole would take for ever
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + b"x" * 1000 + b"\n" + b"y\n" * MOST_LINES)
    assert last_lines(log) == ["y"] * MOST_LINES
    assert last_lines(log, most=MOST_LINES + 1)[0] == "x" * LONGEST


def test_a_secret_is_masked_before_a_line_is_cut(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("a" * (LONGEST - 3) + "hunter22\n")
    assert last_lines(log, lambda line: line.replace("hunter22", "(secret)")) == ["a" * (LONGEST - 3) + "(se"]


def test_a_log_that_is_empty_or_not_there_has_no_last_lines(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert [last_lines(tmp_path / name) for name in ("empty", "none")] == [[], []]


def test_a_cause_has_the_newest_state_of_a_progress_bar_and_nothing_that_a_terminal_obeys(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(
        b"1/9 [=>]\b\b\b\r9/9 [==]\r\n\x1b]0;owned\x07\x1b[31mValueError: no\x1b[0m\n\x1b[0m\n"
    )
    assert last_lines(tmp_path / "log") == ["9/9 [==]", "ValueError: no"]


def test_a_note_about_missing_gpu_libraries_is_never_the_cause() -> None:
    note = (
        "2026-11-23 14:58:33.535927: W tensorflow/stream_executor/platform/default/dso_loader.cc:55] "
        "Could not load dynamic library 'libcuda.so.1'; dlerror: libcuda.so.1: cannot open shared object file"
    )
    assert judge(3, None, ["no table at /data", note]).cause == "exit code 3; its last line: no table at /data"
    assert judge(3, None, [note]).cause == "exit code 3"
