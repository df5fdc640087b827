"""Trying again: only what may pass, with pauses that grow and differ, and never beyond the bound."""

from typing import Callable, List

import pytest

from launch.hosts.retry import Backoff, persist


class Clock:
    """Time that passes only where it is waited for."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.pauses: List[float] = []

    def wait(self, pause_s: float) -> bool:
        self.pauses.append(pause_s)
        self.now_s += pause_s
        return False


def failing(times: int, clock: Clock, each_s: float = 0.0) -> Callable[[], int]:
    """An attempt that is let go so often, then succeeds; it returns how often it was made."""
    made: List[int] = []

    def attempt() -> int:
        made.append(1)
        clock.now_s += each_s
        if len(made) <= times:
            raise ConnectionResetError
        return len(made)

    return attempt


def let_go(error: Exception) -> bool:
    return isinstance(error, ConnectionResetError)


def test_a_pause_is_evenly_from_nothing_to_a_bound_that_doubles_up_to_the_longest() -> None:
    backoff = Backoff(total_s=60.0, first_s=0.25, longest_s=4.0)
    assert [backoff.pause_s(failures, 1.0) for failures in range(1, 8)] == [0.25, 0.5, 1.0, 2.0, 4.0, 4.0, 4.0]
    assert [backoff.pause_s(3, chance) for chance in (0.0, 0.5)] == [0.0, 0.5]


def test_what_may_pass_is_tried_again_until_it_does() -> None:
    clock = Clock()
    made = persist(failing(3, clock), let_go, Backoff(30.0), clock.wait, lambda: 1.0, lambda: clock.now_s)
    assert (made, clock.pauses) == (4, [0.25, 0.5, 1.0])


def test_what_does_not_pass_is_not_tried_again() -> None:
    clock = Clock()

    def refused() -> None:
        clock.now_s += 1.0
        raise PermissionError

    with pytest.raises(PermissionError):
        persist(refused, let_go, Backoff(30.0), clock.wait, lambda: 0.5, lambda: clock.now_s)
    assert (clock.now_s, clock.pauses) == (1.0, [])


def test_no_attempt_begins_after_the_bound_however_long_one_takes() -> None:
    clock = Clock()
    with pytest.raises(ConnectionResetError):
        persist(failing(99, clock, each_s=10.0), let_go, Backoff(30.0), clock.wait, lambda: 1.0, lambda: clock.now_s)
    assert clock.pauses == [0.25, 0.5]  # the third attempt ends at 30.75


def test_whoever_waits_may_give_up() -> None:
    clock = Clock()
    with pytest.raises(ConnectionResetError):
        persist(failing(99, clock), let_go, Backoff(30.0), lambda pause_s: True, lambda: 1.0, lambda: clock.now_s)
    assert clock.now_s == 0.0
