"""A step's time is taken from the chief's lines of progress once every worker trains."""

from typing import List, Tuple

from tests.benchmarks.speed.stamps import Stamp, Window, step_of


def fed(window: Window, told: List[Tuple[int, float, int]]) -> List[int]:
    """The places in ``told`` (worker, seconds, step) where the window began and ended."""
    return [place for place, (worker, at_s, step) in enumerate(told) if window.told(worker, Stamp(at_s, step))]


def test_lines_of_both_programs_tell_their_step() -> None:
    assert step_of("step 23/60 loss 0.5 12.0 ms/step\n") == 23
    assert step_of("step 7/1000000000\n") == 7
    assert step_of("joined at step 3") is None


def test_a_window_begins_some_steps_after_the_last_worker_has_joined() -> None:
    window = Window(workers=2, warm=2, seconds=0, steps=1)
    told = [(0, 0.0, 5), (0, 1.0, 6), (1, 1.5, 6), (0, 2.0, 7), (0, 3.0, 8), (0, 4.0, 9), (0, 5.0, 10)]
    assert fed(window, told) == [5, 6]
    assert (window.steps, window.seconds) == (1, 1.0)


def test_a_window_lasts_for_the_seconds_and_for_the_steps() -> None:
    window = Window(workers=1, warm=0, seconds=2.5, steps=2)
    assert fed(window, [(0, 0.0, 0), (0, 1.0, 4), (0, 2.0, 8), (0, 3.0, 12), (0, 4.0, 16)]) == [0, 3]
    assert (window.steps, window.seconds) == (12, 3.0)


def test_other_workers_neither_begin_nor_end_it() -> None:
    window = Window(workers=2, warm=0, seconds=0, steps=1)
    assert fed(window, [(1, 0.0, 1), (0, 1.0, 1), (1, 2.0, 3), (0, 3.0, 3)]) == [1, 3]
