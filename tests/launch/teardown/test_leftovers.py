"""What was there and is gone, and what is left: worked out of two looks, and put in words."""

from dataclasses import replace
from typing import Optional

from launch.status.removals import GpuMemory, Leftovers, ProcessLeft, SweepFinding, nothing
from launch.teardown import ended, in_words, memory, remains

NOTHING = SweepFinding("r-1", **vars(nothing()), folders=[])


def process(pid: int, start: int = 5, waits_in: Optional[str] = None) -> ProcessLeft:
    return ProcessLeft(pid, 7, start, "python train.py", waits_in)


SOMETHING = SweepFinding(
    "r-1", [process(7)], [2222], [GpuMemory(0, 7, 1536)], ["/w/locks/r.lock"], ["/cg/x"], ["launch.x"], ["/w/code/.x"]
)


def test_what_was_there_and_is_not_any_more_has_ended() -> None:
    assert ended(SOMETHING, NOTHING) == SOMETHING
    assert ended(SOMETHING, SOMETHING) == NOTHING


def test_a_process_is_the_same_by_pid_and_start_time_whatever_it_does_meanwhile() -> None:
    before = replace(NOTHING, processes=[process(7)])
    assert ended(before, replace(NOTHING, processes=[process(7, waits_in="nfs_wait")])).processes == []
    assert ended(before, replace(NOTHING, processes=[process(7, start=6)])).processes == [process(7)]


def test_a_report_that_knows_no_folders_has_none() -> None:
    without = Leftovers(**{kind: getattr(SOMETHING, kind) for kind in vars(nothing())})
    assert ended(without, nothing()) == without
    assert "folder" not in in_words(without) and len(remains(without)) == 6


def test_what_is_left_is_named_piece_by_piece() -> None:
    assert remains(SOMETHING) == [
        "process 7 (python train.py)", "port 2222", "1536 MiB of GPU 0", "lock /w/locks/r.lock",
        "control group /cg/x", "container launch.x", "unfinished folder /w/code/.x",
    ]  # fmt: skip
    assert remains(NOTHING) == []


def test_a_process_that_cannot_be_ended_is_named_with_what_it_waits_in() -> None:
    hung = replace(NOTHING, processes=[process(7, waits_in="nfs_wait")])
    assert remains(hung) == ["process 7 (python train.py), which hangs in nfs_wait"]


def test_what_has_ended_is_counted_and_named() -> None:
    assert in_words(SOMETHING) == (
        "ended 1 process in 1 group (pids 7), port 2222, 1536 MiB of GPU 0, 1 lock, 1 control group, "
        "1 container, 1 unfinished folder"
    )
    assert in_words(replace(NOTHING, processes=[process(7), process(8)])) == "ended 2 processes in 1 group (pids 7, 8)"
    assert in_words(NOTHING) == ""


def test_memory_of_which_the_driver_does_not_tell_how_much_is_told_without() -> None:
    assert memory(GpuMemory(3, 7, None)) == "memory of GPU 3"
