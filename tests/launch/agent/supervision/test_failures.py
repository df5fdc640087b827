"""A failure counts for a while, and the same error twice in a row is not tried again: replayed histories."""

from dataclasses import replace
from typing import Optional

import pytest

from launch.agent.protocol.messages import Exited, Start
from launch.agent.supervision.failures import CALM_S, QUICK_S, CountedFailures, form
from tests.support.agent.histories import Replay, advanced, failed, killed, started, step

DAY_S = 86400.0
AGAIN = "; the same error twice, without progress in between, so the task is not restarted"


def broken(task: str, attempt: int, error: str, kind: str = "exception") -> Exited:
    return replace(failed(task, attempt), error=error, cause=error, kind=kind)


def test_a_failure_is_forgiven_once_it_is_older_than_the_window() -> None:
    failures = CountedFailures()
    failures.add(0.0)
    failures.add(100.0)
    failures.forgive(100.0, 100.0)
    assert failures.count == 2
    failures.forgive(100.5, 100.0)
    assert failures.count == 1
    failures.forgive(10.0**9, None)
    assert failures.count == 1


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("ValueError: row 17 has 3 columns", "ValueError: row 4 has 12 columns", True),
        ("RuntimeError: <Model object at 0x7f12ab>", "RuntimeError: <Model object at 0x7f99cd>", True),
        ("OSError: /tmp/tmpa1b2/x", "OSError: /tmp/tmpz9/x", True),
        ("KeyError: 'user'", "KeyError: 'item'", False),
        ("ValueError", "TypeError", False),
    ],
)
def test_numbers_and_addresses_do_not_make_another_error(one: str, other: str, same: bool) -> None:
    assert (form(one) == form(other)) is same


# -- a run of months


def failed_every(days: float, times: int, window_s: Optional[float]) -> Replay:
    replay = Replay(restart_max=3, restart_window_s=window_s)
    replay.up()
    for attempt in range(times):
        replay.at((1 + attempt) * days * DAY_S, killed("worker:1", attempt))
        replay.at((1 + attempt) * days * DAY_S + 60.0)
        replay.at((1 + attempt) * days * DAY_S + 60.0, started("worker:1", attempt + 1))
    return replay


def test_a_task_that_dies_once_a_week_does_not_end_a_run_of_months() -> None:
    replay = failed_every(7.0, 30, DAY_S)
    assert replay.run.state.result is None
    assert replay.run.tasks["worker:1"].attempt == 30


def test_its_pause_begins_anew_too() -> None:
    replay = failed_every(7.0, 5, DAY_S)
    replay.at(50 * DAY_S, killed("worker:1", 5))
    assert replay.at(50 * DAY_S + 1.0) == [Start("worker:1", 6)]


def test_within_the_window_max_holds() -> None:
    replay = failed_every(0.1, 3, DAY_S)
    replay.at(0.5 * DAY_S, killed("worker:1", 3))
    assert replay.run.state.result == "failed"
    assert "(attempt 4 of 4)" in str(replay.run.state.cause)


def test_without_a_window_every_failure_counts() -> None:
    replay = failed_every(7.0, 4, None)
    assert replay.run.state.result == "failed"


# -- the same error twice


def twice(first: str, second: str, kind: str = "exception", lives_s: float = 5.0) -> Replay:
    replay = Replay(restart_max=3)
    replay.up()
    replay.at(5, broken("worker:1", 0, first, kind))
    replay.at(6)
    replay.at(6, started("worker:1", 1))
    replay.at(6 + lives_s, broken("worker:1", 1, second, kind))
    return replay


def test_the_same_error_twice_fails_the_run_at_once_and_says_so() -> None:
    replay = twice("ValueError: row 17", "ValueError: row 18")
    assert replay.run.state.result == "failed"
    cause = str(replay.run.state.cause)
    assert cause.startswith("worker:1@b (attempt ") and cause.endswith(AGAIN)
    assert replay.run.incidents.blame is not None and replay.run.incidents.blame.line == cause


@pytest.mark.parametrize(
    ("first", "second", "kind", "lives_s"),
    [
        ("ValueError: a", "ValueError: b", "exception", 5.0),  # another error
        ("ValueError: a", "ValueError: a", "exception", QUICK_S),  # it lived for long
        ("UnavailableError: gone", "UnavailableError: gone", "lost-connection", 5.0),  # the other may be back
        ("", "", "exit", 5.0),  # no error is known
    ],
)
def test_another_error_and_one_that_may_pass_are_tried_again(
    first: str, second: str, kind: str, lives_s: float
) -> None:
    assert twice(first, second, kind, lives_s).run.state.result is None


def test_a_newer_step_in_between_is_progress() -> None:
    replay = Replay(restart_max=3)
    replay.up()
    step(replay, 4, 1)
    replay.at(5, broken("worker:1", 0, "ValueError: a"))
    replay.at(6)
    replay.at(7, started("worker:1", 1))
    step(replay, 7, 2, "worker:0")
    replay.at(8, broken("worker:1", 1, "ValueError: a"))
    assert replay.run.state.result is None
    replay.at(10)
    replay.at(10, started("worker:1", 2))
    replay.at(11, broken("worker:1", 2, "ValueError: a"))
    assert replay.run.state.result == "failed"


def test_where_another_task_has_died_lately_its_absence_may_be_the_reason() -> None:
    replay = Replay(restart_max=5)
    replay.up()
    replay.at(4, killed("ps:0"))
    for attempt in range(3):
        replay.at(5 + 10 * attempt, broken("worker:1", attempt, "FailedPreconditionError: uninitialized"))
        replay.at(14 + 10 * attempt, started("worker:1", attempt + 1))
    assert replay.run.state.result is None
    replay.at(30, started("ps:0", 1), advanced("ps:0", attempt=1))
    step(replay, 31, 1, "worker:0")
    for attempt, now in ((3, 20 + CALM_S), (4, 40 + CALM_S)):
        replay.at(now, started("worker:1", attempt))
        replay.at(now + 1, broken("worker:1", attempt, "FailedPreconditionError: uninitialized"))
        replay.at(now + 20)
    assert replay.run.state.result == "failed"


def test_a_task_that_is_still_away_may_be_the_reason_however_long_ago_it_died() -> None:
    replay = Replay(restart_max=5, backoff_s=100.0)
    replay.up()
    replay.at(4, killed("ps:0"))
    replay.at(10, broken("worker:1", 0, "FailedPreconditionError: uninitialized"))
    replay.at(110)
    replay.at(110, started("worker:1", 1))
    replay.at(111, broken("worker:1", 1, "FailedPreconditionError: uninitialized"))
    assert replay.states()["ps:0"] == "starting"
    assert replay.run.state.result is None


def test_a_host_that_is_silent_may_be_the_reason() -> None:
    replay = Replay(restart_max=5)
    replay.up()
    replay.run.silent = ["a"]
    for attempt in (0, 1):
        replay.at(5 + 5 * attempt, broken("worker:1", attempt, "ValueError: no peer"))
        replay.at(9 + 5 * attempt)
        replay.at(9 + 5 * attempt, started("worker:1", attempt + 1))
    assert replay.run.state.result is None


def test_an_evaluator_that_is_not_tried_again_has_the_reason_in_its_cause() -> None:
    replay = Replay("ps:0@a", "worker:0@a", "evaluator:0@a", restart_max=5)
    replay.up()
    for attempt in (0, 1):
        replay.at(5 + 5 * attempt, broken("evaluator:0", attempt, "ValueError: a"))
        replay.at(9 + 5 * attempt)
        replay.at(9 + 5 * attempt, started("evaluator:0", attempt + 1))
    assert replay.states()["evaluator:0"] == "failed" and replay.run.state.result is None
    assert replay.run.tasks["evaluator:0"].cause == "ValueError: a" + AGAIN


def test_an_evaluator_that_has_failed_for_good_is_no_reason() -> None:
    replay = Replay("ps:0@a", "worker:0@a", "worker:1@b", "evaluator:0@a", restart_max=5)
    replay.up()
    replay.at(1, failed("evaluator:0", retry=False))
    for attempt in (0, 1, 2):  # the first has lived for long
        replay.at(100 + 5 * attempt, broken("worker:1", attempt, "ValueError: a"))
        replay.at(104 + 5 * attempt)
        replay.at(104 + 5 * attempt, started("worker:1", attempt + 1))
    assert replay.run.state.result == "failed"


def test_all_workers_with_the_same_mistake_fail_twice_and_not_to_the_end() -> None:
    replay = Replay("worker:0@a", "worker:1@b", restart_max=5, judge="exit", steps=None)
    replay.up()
    for attempt in (0, 1):
        for task in ("worker:0", "worker:1"):
            replay.at(
                5 + 5 * attempt, replace(broken(task, attempt, "NameError: name 'x' is not defined"), outcome=None)
            )
        replay.at(9 + 5 * attempt)
        for task in ("worker:0", "worker:1"):
            replay.at(9 + 5 * attempt, started(task, attempt + 1))
    assert replay.run.state.result == "failed"
    assert replay.run.tasks["worker:0"].attempt == 1
