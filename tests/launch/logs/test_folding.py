"""Equal lines of many tasks become one with a count; nothing is lost, and nothing waits for ever."""

from datetime import datetime
from typing import Dict, List, Tuple

import pytest

from launch.logs.folding import MOST, LogLine, Window, shown

Printed = List[Tuple[str, str]]  # [(task, line)]


def worker(index: int, text: str, time: float = 0.0) -> LogLine:
    return LogLine(time, f"worker:{index}", f"gpu{index + 1:02}", text)


def told(lines: List[LogLine], seconds: float = 3.0) -> List[str]:
    """What comes of lines whose own times are the clock."""
    window, said = Window(seconds), []
    for line in lines:
        window.take(line, line.time)
        said += window.due(line.time)
    return [shown(folded) for folded in said + window.rest()]


def test_the_line_of_one_task_is_told_as_it_is() -> None:
    assert told([worker(1, "one"), worker(1, "two")]) == ["worker:1@gpu02 one", "worker:1@gpu02 two"]


def test_equal_lines_of_many_tasks_are_one_with_a_count() -> None:
    assert told([worker(index, "hello") for index in range(8)]) == ["worker:[0-7]@gpu[01-08] ×8 hello"]


def test_tasks_of_several_roles_and_one_host_fold_too() -> None:
    lines = [LogLine(0.0, name, "h1", "up") for name in ("ps:0", "worker:0", "worker:1")]
    assert told(lines) == ["ps:0,worker:[0-1]@h1 ×3 up"]


def test_lines_come_out_in_the_order_of_their_first() -> None:
    lines = [worker(0, "a"), worker(0, "b"), worker(1, "a"), worker(1, "c"), worker(1, "b")]
    assert told(lines) == ["worker:[0-1]@gpu[01-02] ×2 a", "worker:[0-1]@gpu[01-02] ×2 b", "worker:1@gpu02 c"]


def test_who_says_the_same_twice_has_said_two_lines() -> None:
    assert (
        told([worker(0, "a"), worker(1, "a"), worker(0, "a"), worker(1, "a")]) == ["worker:[0-1]@gpu[01-02] ×2 a"] * 2
    )


def test_a_line_that_comes_when_the_window_is_over_is_a_line_of_its_own() -> None:
    lines = [worker(0, "a", 10.0), worker(1, "a", 12.9), worker(2, "a", 13.0)]
    assert told(lines) == ["worker:[0-2]@gpu[01-03] ×3 a"]
    assert told([*lines[:2], worker(5, "b", 13.0), *lines[2:]]) == [
        "worker:[0-1]@gpu[01-02] ×2 a", "worker:5@gpu06 b", "worker:2@gpu03 a",
    ]  # fmt: skip


def test_a_line_is_due_when_its_window_is_over_though_nothing_more_comes() -> None:
    window = Window(1.0)
    window.take(worker(0, "a"), 10.0)
    assert window.due(10.9) == []
    assert [shown(folded) for folded in window.due(11.0)] == ["worker:0@gpu01 a"]
    assert window.due(99.0) == window.rest() == []


def test_without_a_window_every_line_comes_out_at_once_and_by_itself() -> None:
    window = Window(0.0)
    for index in range(2):
        window.take(worker(index, "a"), 5.0)
        assert [shown(folded) for folded in window.due(5.0)] == [f"worker:{index}@gpu{index + 1:02} a"]


def test_however_many_lines_come_at_once_only_so_many_are_held_back() -> None:
    window = Window(1e9)
    for number in range(MOST + 1):
        window.take(worker(0, str(number)), 0.0)
    assert [folded.text for folded in window.due(0.0)] == ["0"]


@pytest.mark.parametrize("seconds", [0.0, 2.0, 100.0])
def test_every_line_of_every_task_is_told_once_and_in_its_order(seconds: float) -> None:
    printed: Printed = [(f"worker:{n % 3}", f"line {n // 5 % 4}") for n in range(200)]
    window, said = Window(seconds), []
    for now, (task, text) in enumerate(printed):
        window.take(LogLine(now, task, "h", text), float(now))
        said += window.due(float(now))
    said += window.rest()
    counted: Dict[Tuple[str, str], int] = {}
    for folded in said:
        for task, _ in folded.sources:
            counted[task, folded.text] = counted.get((task, folded.text), 0) + 1
    assert counted == {pair: printed.count(pair) for pair in set(printed)}


def test_the_time_of_day_is_the_firsts() -> None:
    at = datetime(2026, 11, 20, 15, 59, 2).timestamp()
    window = Window(3.0)
    window.take(worker(0, "a", at), at)
    window.take(worker(1, "a", at + 2), at + 2)
    assert [shown(folded, times=True) for folded in window.rest()] == [
        "2026-11-20 15:59:02 worker:[0-1]@gpu[01-02] ×2 a"
    ]


def test_notes_about_missing_gpu_libraries_fold_whatever_their_times_and_are_whole_when_raw() -> None:
    place = "W tensorflow/stream_executor/platform/default/dso_loader.cc:55]"
    note = f"{place} Could not load dynamic library 'libcuda.so.1'; dlerror: no such file"
    lines = [worker(index, f"2026-11-23 14:58:33.53592{index}: {note}") for index in range(2)]
    folded = "TensorFlow: Could not load dynamic library 'libcuda.so.1'"
    assert told(lines) == [f"worker:[0-1]@gpu[01-02] ×2 {folded}"]
    assert told(lines, seconds=0) == [f"worker:{index}@gpu0{index + 1} {lines[index].text}" for index in range(2)]
