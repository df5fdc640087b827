"""A long log keeps its first and its newest lines and gives back the room of the rest; readers go over the gap."""

import errno
import os
from pathlib import Path
from typing import Any, List

import pytest

from launch.agent.state.run_folder import RunFolder
from launch.agent.tasks import task_log
from launch.agent.tasks.task_log import NO_GAP, LogBound, LogGap, gap_of, index_of
from launch.agent.verbs.logs import TaskLog

FIRST, NEWEST, STEP = 1 << 14, 1 << 16, 1 << 13
WIDTH = 64  # bytes of a line


class Log:
    """A log of numbered lines, whose index has a time for each thousand: line 2000 was written at 2.0."""

    def __init__(self, folder: Path):
        self.folder = RunFolder(folder / "w", "r-20261120-120000", "h")
        self.folder.task("worker:0").mkdir(parents=True)
        self.path = self.folder.log("worker:0", 0)
        self.bound = LogBound(self.path, FIRST, NEWEST, STEP)
        self.count, self.now = 0, 0.0

    def write(self, count: int) -> None:
        with open(str(self.path), "a") as log, open(str(index_of(self.path)), "a") as index:
            for number in range(self.count, self.count + count):
                log.write(f"{number}".ljust(WIDTH - 1, ".") + "\n")
                if number % 1000 == 999:
                    index.write(f"{(number + 1) / 1000:.1f} {(number + 1) * WIDTH}\n")
        self.count += count

    def look(self) -> LogGap:
        self.now += task_log.BOUND_S
        self.bound.look(self.now)
        return gap_of(self.path)

    def reader(self, **options: Any) -> TaskLog:
        return TaskLog(self.folder, "worker:0", **options)

    def read(self, **options: Any) -> List[str]:
        return numbers(self.reader(**options))


def numbers(reader: TaskLog) -> List[str]:
    """What a reader finds: the numbers of lines, and the notice of a gap."""
    return [line["line"].rstrip(".") for line in reader.lines(last=True)]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def around(gap: LogGap, count: int) -> List[str]:
    """The lines of a log with a gap."""
    return [*map(str, range(gap.begin // WIDTH)), gap.line, *map(str, range(gap.end // WIDTH, count))]


def test_a_log_within_its_bound_stays_whole(log: Log) -> None:
    log.write((FIRST + NEWEST + STEP) // WIDTH)
    assert log.look() == NO_GAP and log.read() == list(map(str, range(log.count)))


def test_of_a_longer_one_the_first_and_the_newest_lines_stay_and_its_length(log: Log) -> None:
    log.write(10_000)
    gap, status = log.look(), os.stat(str(log.path))
    assert FIRST <= gap.begin <= FIRST + WIDTH and NEWEST - WIDTH <= status.st_size - gap.end <= NEWEST
    assert status.st_size == 10_000 * WIDTH
    assert status.st_blocks * 512 <= FIRST + NEWEST + 4 * 4096
    assert log.read() == around(gap, 10_000)


def test_a_gap_grows_in_steps_and_keeps_its_beginning(log: Log) -> None:
    log.write(10_000)
    before = log.look()
    log.write(STEP // WIDTH - 1)
    assert log.look() == before
    log.write(1000)
    after = log.look()
    assert after.begin == before.begin and after.end > before.end
    assert log.read() == around(after, log.count)


def test_an_agent_that_is_started_again_goes_on_with_the_gap(log: Log) -> None:
    log.write(10_000)
    before = log.look()
    log.bound = LogBound(log.path, FIRST, NEWEST, STEP)
    log.write(1000)
    assert log.look().begin == before.begin


def test_who_follows_goes_over_what_has_gone_meanwhile_and_loses_no_other_line(log: Log) -> None:
    log.write(1000)
    reader = log.reader()
    assert numbers(reader) == list(map(str, range(1000)))
    log.write(9000)
    gap = log.look()
    assert numbers(reader) == [gap.line, *map(str, range(gap.end // WIDTH, 10_000))]
    log.write(1000)
    assert numbers(reader) == list(map(str, range(10_000, 11_000)))


def test_who_reads_while_a_gap_grows_finds_no_zeros(log: Log) -> None:
    log.write(10_000)
    log.look()
    reader = log.reader().lines(last=True)
    seen = [next(reader)["line"].rstrip(".") for _ in range(gap_of(log.path).begin // WIDTH + 2)]
    log.write(5000)
    gap = log.look()
    seen += [line["line"].rstrip(".") for line in reader]
    assert seen[-1] == gap.line and not any("\0" in line or not line for line in seen)


def test_times_are_those_of_the_lines_and_a_span_in_the_gap_has_its_notice(log: Log) -> None:
    log.write(10_000)
    gap = log.look()
    assert log.read(since=9.5) == list(map(str, range(9000, 10_000)))
    assert log.read(since=4.0)[:2] == [gap.line, str(gap.end // WIDTH)]
    assert log.read(since=4.0, until=6.0) == [gap.line]
    assert log.read(until=0.5) == []


@pytest.mark.parametrize("count", [1, 500, 5000])
def test_the_last_lines_are_those_behind_the_gap(count: int, log: Log) -> None:
    log.write(10_000)
    gap = log.look()
    assert log.read(tail=count) == list(map(str, range(max(10_000 - count, gap.end // WIDTH), 10_000)))


def test_a_log_without_lines_is_bounded_too(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_log, "NEARBY", 1 << 10)
    log.path.write_bytes(b"x" * 1_000_000)
    assert log.look() == LogGap(FIRST, 1_000_000 - NEWEST)
    assert not any("\0" in line for line in log.read())


def test_where_the_disk_frees_no_blocks_the_log_stays_whole(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(task_log, "punch", refuse)
    log.write(10_000)
    assert log.look() == log.look() == NO_GAP and len(log.read()) == 10_000


@pytest.mark.parametrize("text", ["", "x", "5", "9 3", "-1 3", "1 2 3", "1 2" + " " * 200])
def test_a_file_that_is_no_gap_hides_no_line(text: str, log: Log) -> None:
    log.write(10)
    task_log.gap_file_of(log.path).write_text(text)
    assert len(log.read()) == 10
