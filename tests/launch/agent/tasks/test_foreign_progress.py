"""The agent reads the progress of a foreign program in bounded time, whatever the program does with its files."""

import os
import re
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Optional

import pytest

from cluster.protocol.progress_lines import FILE, LONGEST, compiled
from launch.agent.protocol.messages import Advanced
from launch.agent.state.run_folder import RunFolder
from launch.agent.tasks import foreign_progress
from launch.agent.tasks.foreign_progress import MANY, MOST_LATE, PIECE, ForeignProgress, Tail, TooLong, at_most

EXPRESSION = r"step (?P<step>\d+)(?:.*loss (?P<loss>\S+))?"


class Program:
    """A program's files, and the progress that its agent reports; ``now`` is the agent's clock."""

    def __init__(self, workdir: Path, expression: Optional[str] = EXPRESSION):
        self.folder = RunFolder(workdir, "r", "h")
        self.folder.task("worker:0").mkdir(parents=True)
        self.events: List[Advanced] = []
        self.progress = ForeignProgress(self.folder, expression, self.events.append, {"KEY": "sesame-opens"})
        self.file, self.now = self.folder.task("worker:0") / FILE, 0.0

    def prints(self, text: str, attempt: int = 0) -> None:
        with open(str(self.folder.log("worker:0", attempt)), "a") as log:
            log.write(text)

    def writes(self, text: str) -> None:
        with open(str(self.file), "a") as file:
            file.write(text)

    def reports(self, after_s: float = 1.0, attempt: int = 0, has_ended: bool = False) -> List[Dict[str, Any]]:
        """What the agent reports at its next look."""
        self.now += after_s
        before = len(self.events)
        self.progress.look(self.now, "worker:0", attempt, has_ended)
        return [each.progress for each in self.events[before:]]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def some(report: Dict[str, Any], *keys: str) -> List[Any]:
    return [report[key] for key in keys]


def test_the_newest_step_of_the_log_is_reported_once_a_second(program: Program) -> None:
    program.prints("begins\nstep 2 loss 0.5\n")
    (report,) = program.reports()
    assert some(report, "step", "loss", "reports", "step_time_ms", "rate") == [2, 0.5, 1, None, None]
    program.prints("step 6 loss 0.4\n")
    assert program.reports(0.5) == []
    (report,) = program.reports(1.5)
    assert some(report, "step", "loss", "reports", "step_time_ms") == [6, 0.4, 2, 500.0]
    assert program.reports() == []


def test_half_a_line_that_a_killed_program_has_left_is_no_mistake_of_its_author(program: Program) -> None:
    program.writes('{"step": 1}\n{"step": 2}\n')
    program.reports()
    program.writes('{"step": 3}\n{"st')
    assert some(program.reports(has_ended=True)[-1], "step", "warnings") == [3, []]


def test_an_expression_that_only_the_launchers_python_can_read_is_a_remark_and_no_crash(tmp_path: Path) -> None:
    program = Program(tmp_path, r"step (?P<step>\d+")  # as \d++ is for Python 3.7
    program.prints("step 2\n")
    (report,) = program.reports()
    python = f"Python {sys.version_info[0]}.{sys.version_info[1]} of its host"
    (warning,) = report["warnings"]
    assert report["step"] is None
    assert warning.startswith(f"progress of worker:0: {python} cannot read the expression: missing )")
    program.writes('{"step": 3}\n')
    assert some(program.reports()[-1], "step", "warnings") == [3, []]


@pytest.mark.parametrize("has_ended", [False, True])
@pytest.mark.parametrize("line", ["step {}\n", '{{"step": {}}}\n'])
def test_the_first_step_of_an_attempt_is_reported_before_the_newest(
    program: Program, line: str, has_ended: bool
) -> None:
    """Else a restart from a checkpoint would seem to have lost fewer steps."""
    text = "".join(map(line.format, (3, 4, 5)))
    program.prints(text) if line.startswith("step") else program.writes(text)
    reports = program.reports(0.1, has_ended=has_ended)
    reports += [] if has_ended else program.reports(1.0)
    assert [some(each, "step", "reports") for each in reports] == [[3, 1], [5, 2]]


def test_half_a_line_waits_for_its_rest_and_counts_at_the_end(program: Program) -> None:
    program.prints("step 1\nstep 12")
    assert [each["step"] for each in program.reports()] == [1]
    program.prints("3\nstep 124")
    assert [each["step"] for each in program.reports()] == [123]
    assert [each["step"] for each in program.reports(0.1, has_ended=True)] == [124]
    assert program.reports(has_ended=True) == []


@pytest.mark.parametrize("before", ["step 1230\n", ""])
def test_half_a_number_that_a_killed_program_has_left_is_no_step_back(program: Program, before: str) -> None:
    program.prints("step 1228\nstep 1229\n")
    program.reports()
    program.prints(f"{before}step 12")  # of 1231
    assert [each["step"] for each in program.reports(has_ended=True)] == [1230 if before else 1229]


def test_a_progress_bar_ends_its_lines_by_going_back(program: Program) -> None:
    program.prints("\rstep 1 loss 3\rstep 2 loss 2\rstep 3 lo")
    assert [some(each, "step", "loss") for each in program.reports()] == [[1, 3.0]]
    assert [some(each, "step", "loss") for each in program.reports()] == [[2, 2.0]]


def test_lines_of_json_count_before_the_log(program: Program) -> None:
    program.prints("step 1\n")
    program.writes('{"step": 7, "loss": 0.25, "rate": 88.0, "lr": 1}\n')
    assert [some(each, "step", "loss", "rate") for each in program.reports()] == [[7, 0.25, 88.0]]
    program.prints("step 9\n")
    assert program.reports() == []


def test_the_file_may_be_truncated_replaced_removed_and_turned_into_anything(program: Program) -> None:
    program.writes('{"step": 1}\n')
    program.reports()
    program.writes('{"step": 2}\n')
    assert [each["step"] for each in program.reports()] == [2]
    program.file.write_text('{"step": 3}\n')
    assert [each["step"] for each in program.reports()] == [3]
    program.file.unlink()
    assert program.reports() == []
    program.writes('{"step": 4}\n' * 9)
    assert [each["step"] for each in program.reports()] == [4]
    program.file.unlink()
    os.mkfifo(str(program.file))
    assert program.reports() == []
    program.file.unlink()
    program.file.symlink_to("/dev/zero")
    assert program.reports() == []


def test_of_a_huge_file_only_the_newest_bytes_are_read(program: Program) -> None:
    program.writes('{"step": 1}\n')
    with open(str(program.file), "r+b") as file:
        file.truncate(1 << 40)  # sparse: a terabyte of zeros
    program.writes('\n{"step": 2}\n')
    began = time.process_time()
    assert [each["step"] for each in program.reports()] == [2]
    assert time.process_time() - began < 1.0


def test_a_burst_of_a_log_is_read_from_its_newest_part(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"first\n" + b"x" * 100 + b"\n" + b"".join(b"%09d\n" % number for number in range(PIECE // 5)))
    lines = Tail(log).lines()
    assert lines[-1] == f"{PIECE // 5 - 1:09d}" and len(lines) < PIECE // 5
    assert all(re.fullmatch(r"\d{9}", line) for line in lines)  # the first one is whole, too


def test_a_line_without_end_is_skipped_whole(tmp_path: Path) -> None:
    log, tail = tmp_path / "log", Tail(tmp_path / "log")
    with open(str(log), "ab", buffering=0) as file:
        file.write(b"a\n" + b"step 1 " * LONGEST)
        assert tail.lines() == ["a"]
        for _ in range(3):
            file.write(b"step 2 " * LONGEST)
            assert tail.lines() == []
        file.write(b"step 3")
        assert tail.lines() == []
        file.write(b" end\nb\n" + b"y" * (LONGEST + 1) + b"\nc\n")
        assert tail.lines() == ["b", "c"]


def test_binary_output_is_no_progress_and_no_error(program: Program) -> None:
    noise = bytes(range(256)) * 40
    for path in (program.file, program.folder.log("worker:0", 0)):
        path.write_bytes(noise)
    assert [each["step"] for each in program.reports()] == [None]  # a remark: no JSON
    program.prints("\nstep 5\n")
    assert [each["step"] for each in program.reports()] == [5]


def test_each_attempt_begins_anew(program: Program) -> None:
    program.prints("step 1\n")
    program.reports()
    program.prints("step 2\n")
    program.reports()
    program.prints("step 1\n", attempt=1)
    assert [some(each, "step", "reports") for each in program.reports(attempt=1)] == [[1, 1]]


def test_a_loss_that_is_not_finite_is_named_and_not_shown(program: Program) -> None:
    program.prints("step 1 loss nan\n")
    (report,) = program.reports()
    assert some(report, "loss", "warnings") == [
        None, ["progress of worker:0: loss: expected a finite number, found nan"],
    ]  # fmt: skip
    program.prints("step 2 loss 0.5\n")
    assert [some(each, "loss", "warnings") for each in program.reports()] == [[0.5, []]]


def test_a_text_that_is_no_number_is_named_once_and_without_secrets(program: Program) -> None:
    program.prints("step 1 loss sesame-opens\n")
    (report,) = program.reports()
    program.prints("step 2 loss other\n")
    (again,) = program.reports()
    told = ["progress of worker:0: loss: expected a number, found '(secret)'"]
    assert (report["warnings"], again["warnings"]) == (told, told)


def test_an_expression_that_matches_nothing_is_told_without_a_step(program: Program) -> None:
    program.prints("noise\n" * MANY)
    told = {"step": None, "warnings": ["progress of worker:0: no line of its log matches the pattern"]}
    assert program.reports() == [told]
    program.prints("noise\n")
    assert program.reports() == []
    program.prints("step 3\n")
    assert [some(each, "step", "warnings") for each in program.reports()] == [[3, []]]


def test_a_search_without_end_is_ended_and_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_progress, "SEARCH_S", 0.02)
    program = Program(tmp_path, r"(a+)+b(?P<step>\d+)")
    began = time.process_time()
    for _ in range(MOST_LATE):
        program.prints("a" * 4000 + "\n")
        assert program.reports() == []
    (report,) = program.reports()
    assert report["step"] is None and "remove any repetition inside a repetition" in report["warnings"][0]
    program.prints("a" * 4000 + "\n")
    assert program.reports() == []
    assert time.process_time() - began < 5.0


def test_a_block_may_take_no_more_than_its_time_and_the_timer_is_gone_afterwards() -> None:
    with pytest.raises(TooLong), at_most(0.05):
        compiled("(a+)+b").search("a" * 60)
    with at_most(0.05):
        pass
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
