"""When the lines of a log were written, from its size at every second."""

import os
from pathlib import Path

import pytest

from launch.agent.tasks.task_log import EVERY_S, LogTimes, Times, index_of


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Ten bytes by 100 s, twenty by 103 s, and ten more of which nothing was noted, at 200 s."""
    log = tmp_path / "attempt_0.log"
    log.write_bytes(b"x" * 30)
    os.utime(str(log), (200.0, 200.0))
    index_of(log).write_text("100.0 10\n103.0 20\n")
    return log


def times_of(log: Path) -> Times:
    times = Times(log)
    times.update()
    return times


@pytest.mark.parametrize(("offset", "moment"), [(0, 100.0), (9, 100.0), (10, 103.0), (19, 103.0), (20, 200.0)])
def test_a_byte_was_there_by_the_first_time_at_which_the_log_was_longer(log: Path, offset: int, moment: float) -> None:
    assert times_of(log).time_of(offset) == moment


@pytest.mark.parametrize(("moment", "size"), [(0.0, 0), (100.0, 0), (100.1, 10), (103.0, 10), (104.0, 20)])
def test_what_was_there_before_a_time_of_day_is_told_in_bytes(log: Path, moment: float, size: int) -> None:
    assert times_of(log).written_before(moment) == size


def test_a_log_without_times_is_as_old_as_its_last_change(log: Path) -> None:
    index_of(log).unlink()
    assert (times_of(log).time_of(0), times_of(log).written_before(1e12)) == (200.0, 0)


def test_what_is_noted_later_is_taken_in_later_and_whole(log: Path) -> None:
    times = times_of(log)
    with open(str(index_of(log)), "a") as index:
        index.write("110.0 25\n111.0 3")
    times.update()
    assert times.time_of(24) == 110.0 and times.time_of(26) == 200.0


def test_a_log_that_grows_is_noted_once_a_second_and_one_that_does_not_is_not(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    moments = iter([1000.0, 1001.0, 1002.0])
    times = LogTimes(log, clock=lambda: next(moments))
    times.note(50.0)
    log.write_text("four")
    times.note(50.0 + EVERY_S / 2)
    times.note(50.0 + EVERY_S)
    times.note(50.0 + 2 * EVERY_S)
    log.write_text("fourfour")
    times.note(50.0 + 2 * EVERY_S, at_once=True)
    assert index_of(log).read_text() == "1000.0 4\n1001.0 8\n"


def test_times_that_cannot_be_written_are_no_reason_to_stop(
    tmp_path: Path, capsys: "pytest.CaptureFixture[str]"
) -> None:
    times = LogTimes(tmp_path / "none" / "log")
    times.note(0.0)
    times.note(EVERY_S)
    assert capsys.readouterr().err == f"the times of {tmp_path}/none/log are not recorded: No such file or directory\n"
