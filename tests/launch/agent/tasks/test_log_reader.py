"""The lines of a task's logs: every one, of a time, or the last ones; never a whole log in memory."""

import io
import os
import time
from pathlib import Path
from typing import Any, List

import pytest

from launch.agent.state.run_folder import RunFolder
from launch.agent.tasks.task_log import index_of
from launch.agent.verbs.logs import BLOCK, CUT, LONGEST, TaskLog, line_start, show, start_of_last


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "w", "r-20261120-120000", "h")
    folder.task("worker:0").mkdir(parents=True)
    return folder


def write(folder: RunFolder, attempt: int, text: str, times: str = "") -> Path:
    log = folder.log("worker:0", attempt)
    log.write_text(text)
    os.utime(str(log), (900.0, 900.0))
    if times:
        index_of(log).write_text(times)
    return log


def lines(folder: RunFolder, last: bool = True, **options: Any) -> List[str]:
    return [line["line"] for line in TaskLog(folder, "worker:0", **options).lines(last)]


def test_every_line_comes_with_its_attempt_and_its_time(folder: RunFolder) -> None:
    write(folder, 0, "one\ntwo\n", "100.0 4\n101.0 8\n")
    write(folder, 1, "three")
    told = list(TaskLog(folder, "worker:0").lines(last=True))
    assert [(line["attempt"], line["line"], line["time"]) for line in told] == [
        (0, "one", 100.0), (0, "two", 101.0), (1, "three", 900.0),
    ]  # fmt: skip


def test_a_log_that_grows_is_read_on_and_half_a_line_waits_for_its_end(folder: RunFolder) -> None:
    log = write(folder, 0, "one\ntw")
    reader = TaskLog(folder, "worker:0")
    assert [line["line"] for line in reader.lines(last=False)] == ["one"]
    log.write_text("one\ntwo\nthree")
    assert [line["line"] for line in reader.lines(last=False)] == ["two"]
    assert [line["line"] for line in reader.lines(last=True)] == ["three"]
    assert list(reader.lines(last=True)) == []


@pytest.mark.parametrize(
    ("since", "until", "found"),
    [
        (None, None, ["a", "b", "c", "d"]),
        (101.0, None, ["b", "c", "d"]),
        (100.5, 101.5, ["b", "c"]),
        (None, 100.5, ["a"]),
        (102.5, None, []),
        (None, 100.0, []),
    ],
)
def test_lines_of_a_time_are_found_by_when_they_were_written(
    folder: RunFolder, since: float, until: float, found: List[str]
) -> None:
    log = write(folder, 0, "a\nb\nc\nd\n", "100.0 2\n101.0 6\n102.0 8\n")
    os.utime(str(log), (102.0, 102.0))
    assert lines(folder, since=since, until=until) == found


def test_a_line_that_was_half_written_when_the_time_began_is_not_of_it(folder: RunFolder) -> None:
    write(folder, 0, "long line\nnext\n", "100.0 4\n101.0 15\n")
    assert lines(folder, since=100.5) == ["next"]


@pytest.mark.parametrize(
    ("tail", "found"),
    [(0, []), (1, ["e"]), (2, ["d", "e"]), (3, ["c", "d", "e"]), (4, ["b", "c", "d", "e"]),
     (9, ["a", "b", "c", "d", "e"])],
)  # fmt: skip
def test_the_last_lines_are_those_of_all_attempts(folder: RunFolder, tail: int, found: List[str]) -> None:
    write(folder, 0, "a\nb\nc\n")
    write(folder, 1, "d\ne")
    assert lines(folder, tail=tail) == found


def test_the_last_lines_of_a_time_end_with_that_time(folder: RunFolder) -> None:
    write(folder, 0, "a\nb\nc\nd\n", "100.0 2\n101.0 6\n102.0 8\n")
    assert lines(folder, until=101.5, tail=1) == ["c"]


def test_a_tail_is_of_what_is_there_first_and_what_comes_later_comes_whole(folder: RunFolder) -> None:
    log = write(folder, 0, "a\nb\n")
    reader = TaskLog(folder, "worker:0", tail=1)
    assert [line["line"] for line in reader.lines(last=False)] == ["b"]
    log.write_text("a\nb\nc\nd\n")
    assert [line["line"] for line in reader.lines(last=False)] == ["c", "d"]


def test_the_end_of_a_huge_log_is_read_without_the_rest(folder: RunFolder) -> None:
    log = folder.log("worker:0", 0)
    with open(str(log), "wb") as file:
        os.ftruncate(file.fileno(), 1 << 36)  # sparse: to read it whole would take for ever
        file.seek(0, os.SEEK_END)
        file.write(b"\nlast but one\nlast\n")
    assert lines(folder, tail=2) == ["last but one", "last"]


@pytest.mark.parametrize("length", [LONGEST, LONGEST + 5, 5 * LONGEST + 7])
def test_of_a_line_longer_than_any_the_first_part_is_shown_and_says_so(folder: RunFolder, length: int) -> None:
    write(folder, 0, "x" * length + "\ny\n")
    assert lines(folder) == ["x" * LONGEST + CUT, "y"]


@pytest.mark.not_fast
def test_a_line_as_long_as_a_disk_is_read_in_a_moment_and_shown_in_part(folder: RunFolder) -> None:
    with open(str(folder.log("worker:0", 0)), "wb") as file:
        file.write(b"first\n")
        file.truncate(1_500_000_000)  # sparse
        file.seek(0, os.SEEK_END)
        file.write(b"\nlast\n")
    began = time.process_time()
    found = lines(folder)
    assert [len(line) for line in found] == [len("first"), len(CUT), len("last")]  # zeros are no text
    assert [len(line) for line in lines(folder, tail=3)] == [len(CUT), len("last")]
    assert time.process_time() - began < 60.0  # of 8 minutes


def test_a_progress_bar_of_any_length_shows_its_newest_states(folder: RunFolder) -> None:
    bar = "".join(f"\r{number} of 100000" for number in range(100_001))
    write(folder, 0, bar + "\ndone\n")
    *states, end = lines(folder)
    assert states[-1] == "100000 of 100000" and end == "done"
    assert len(states) == 1 + len(bar) // LONGEST


def test_of_a_line_that_overwrites_itself_the_end_is_shown() -> None:
    assert [show(line) for line in (b"10 %\r50 %\r100 %\n", b"dos\r\n", b"\xff\n", b"\n")] == ["100 %", "dos", "�", ""]


@pytest.mark.parametrize("block", [BLOCK - 1, BLOCK, BLOCK + 1])
def test_last_lines_are_counted_across_the_blocks_that_are_read(block: int) -> None:
    text = b"first\n" + b"x" * block + b"\nlast\n"
    file = io.BytesIO(text)
    assert start_of_last(file, 0, len(text), 2) == 6
    assert start_of_last(file, 0, len(text), 3) == 0


@pytest.mark.parametrize(("offset", "start"), [(0, 0), (1, 3), (2, 3), (3, 3), (4, 6), (6, 6)])
def test_the_next_line_begins_after_the_newline_or_where_we_are(offset: int, start: int) -> None:
    assert line_start(io.BytesIO(b"ab\ncd\n"), offset) == start
