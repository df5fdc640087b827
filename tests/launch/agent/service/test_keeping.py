"""The keeper's decisions: a missing pulse, the pause before the next agent, and the end of keeping."""

import asyncio
import math
from typing import List, Optional, Tuple

import pytest

from launch.agent.service import keeping
from launch.agent.service.keeping import (
    AWAY,
    CHANCE_S,
    END,
    FAILED,
    LOOK_S,
    OVER,
    SLEPT_S,
    TAKEN,
    Keeping,
    Moment,
    PulseWatch,
    beat,
    granted_s,
    owns_records,
    patience_s,
)
from launch.agent.supervision.agent_lives import MOST, WINDOW_S

PATIENCE_S = 8.0
WHOLE, MUST_GO = bytes([100]), bytes([200])  # beats that grant the whole patience


class Clocks:
    """The clocks of a machine, which only a test moves."""

    def __init__(self) -> None:
        self.now = Moment(1000.0, 5000.0)

    def run(self, seconds: float) -> Moment:
        """Let time pass, and return the time after it."""
        self.now = Moment(self.now.awake + seconds, self.now.since_boot + seconds)
        return self.now

    def sleep(self, seconds: float) -> Moment:
        """Suspend the machine, and return the time after it."""
        self.now = Moment(self.now.awake, self.now.since_boot + seconds)
        return self.now


def beaten(beats: bytes = WHOLE) -> Tuple[PulseWatch, Clocks]:
    """A watch that has read some beats a moment ago."""
    clocks = Clocks()
    watch = PulseWatch(PATIENCE_S, clocks.now)
    watch.read(beats, clocks.now)
    return watch, clocks


def missing_after(watch: PulseWatch, clocks: Clocks) -> float:
    """The seconds until the pulse is missing, for a keeper that looks whenever its wait is over."""
    began = clocks.now.awake
    while watch.goes_on(clocks.now):
        assert watch.wait_s is not None and 0 < watch.wait_s <= max(LOOK_S, CHANCE_S)
        clocks.run(watch.wait_s)
    assert watch.is_missing
    return clocks.now.awake - began


def test_a_pulse_is_missing_after_the_patience_and_a_last_chance() -> None:
    watch, clocks = beaten()
    assert missing_after(watch, clocks) == pytest.approx(PATIENCE_S + CHANCE_S) == watch.waited_s


def test_a_wait_is_never_zero_whatever_the_clock_shows() -> None:
    """Rounded sums once made it so: a keeper looked without waiting, as fast as it could."""
    for number in range(2000):
        watch = PulseWatch(PATIENCE_S, Moment(number / 7, number / 7))
        watch.read(WHOLE, Moment(number / 7, number / 7))
        now = number / 7 + PATIENCE_S
        assert watch.goes_on(Moment(now, now)) and watch.wait_s is not None and watch.wait_s > 0


def test_each_beat_begins_the_count_again() -> None:
    watch, clocks = beaten()
    for _ in range(5):
        assert watch.goes_on(clocks.run(PATIENCE_S - 0.1))
        watch.read(WHOLE, clocks.now)
    assert missing_after(watch, clocks) == pytest.approx(PATIENCE_S + CHANCE_S)


def test_the_newest_beat_counts_of_those_that_a_frozen_keeper_reads_at_once() -> None:
    watch, clocks = beaten(bytes([100, 100, 150, 25]))
    assert missing_after(watch, clocks) == pytest.approx(PATIENCE_S / 4 + CHANCE_S)


def test_an_agent_that_was_stopped_together_with_its_keeper_has_a_last_chance() -> None:
    watch, clocks = beaten()
    assert watch.goes_on(clocks.run(60.0)) and watch.wait_s == CHANCE_S
    watch.read(WHOLE, clocks.run(0.9))
    assert missing_after(watch, clocks) == pytest.approx(PATIENCE_S + CHANCE_S)


def test_before_the_first_beat_of_a_first_agent_nothing_is_counted() -> None:
    clocks = Clocks()
    watch = PulseWatch(PATIENCE_S, clocks.now)
    assert watch.goes_on(clocks.run(3600.0)) and watch.wait_s is None and not watch.begun


def test_a_next_agent_has_a_bounded_time_for_its_first_beat() -> None:
    clocks = Clocks()
    watch = PulseWatch(PATIENCE_S, clocks.now, first_s=60.0)
    assert missing_after(watch, clocks) == pytest.approx(60.0) == watch.waited_s and not watch.begun


@pytest.mark.parametrize("last", [b"", bytes([END]), bytes([100, 100, END])])
def test_an_agent_that_closes_or_ends_is_not_frozen_however_long_that_takes(last: bytes) -> None:
    watch, clocks = beaten()
    watch.read(last, clocks.now)
    assert not watch.goes_on(clocks.run(3600.0)) and not watch.is_missing and watch.begun


def test_a_suspension_counts_where_the_tasks_must_be_gone() -> None:
    """Tasks elsewhere have replaced them meanwhile; the tasks of a lead keep their places."""
    for beats, found_s in ((MUST_GO, CHANCE_S), (WHOLE, PATIENCE_S - 1.0 + CHANCE_S)):
        watch, clocks = beaten(beats)
        assert watch.goes_on(clocks.run(1.0))
        clocks.sleep(PATIENCE_S + SLEPT_S)
        assert missing_after(watch, clocks) == pytest.approx(found_s)


def test_a_short_suspension_does_not_count() -> None:
    watch, clocks = beaten(MUST_GO)
    assert watch.goes_on(clocks.run(PATIENCE_S - 0.2))
    clocks.sleep(SLEPT_S)
    assert watch.goes_on(clocks.now) and watch.wait_s == pytest.approx(0.2)


def test_a_suspension_counts_with_the_time_awake() -> None:
    watch, clocks = beaten(MUST_GO)
    clocks.run(PATIENCE_S - 2.0)
    clocks.sleep(SLEPT_S + 1.5)
    assert watch.goes_on(clocks.now) and watch.wait_s == LOOK_S
    assert watch.goes_on(clocks.run(0.6)) and watch.wait_s == CHANCE_S


def test_a_beat_grants_less_where_tasks_must_soon_be_gone() -> None:
    assert [granted_s(8.0, left) for left in (math.inf, 7.0, 1.0, -5.0)] == [8.0, 7.0 - CHANCE_S, 1.0, 1.0]


def test_a_frozen_agent_is_killed_before_its_host_is_lost_but_a_busy_machine_has_seconds() -> None:
    assert patience_s(10.0) < 10.0 and patience_s(0.5) >= 5.0


@pytest.mark.parametrize(("left_s", "missing_s"), [(math.inf, 9.0), (5.0, 5.0), (-1.0, 2.0), (1000.0, 9.0)])
def test_the_keeper_reads_from_a_beat_what_the_agent_has_granted(
    left_s: float, missing_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "BEAT_S", 0.0)
    watch, clocks = beaten(bytes(first_beats(left_s)[:1]))
    assert missing_after(watch, clocks) == pytest.approx(missing_s, abs=PATIENCE_S / 100)


def first_beats(left_s: float) -> List[int]:
    """What an agent writes that is cancelled after some beats."""
    written: List[int] = []

    async def briefly() -> None:
        beating = asyncio.ensure_future(beat(written.append, PATIENCE_S, lambda: left_s))
        await asyncio.sleep(0.001)
        beating.cancel()
        await asyncio.wait([beating])

    asyncio.run(briefly())
    return written


def test_an_agent_beats_until_it_is_cancelled_and_then_writes_the_last_byte() -> None:
    *beats, last = first_beats(math.inf)
    assert set(beats) == {100} and last == END


def pauses(keep: Keeping, *codes: int, every_s: float = 0.0) -> List[Optional[float]]:
    """The pauses after agents that began and ended with these codes."""
    return [keep.ended(code, True, 1000.0 + every_s * number) for number, code in enumerate(codes)]


def test_the_pauses_grow_and_after_too_many_ends_no_agent_follows() -> None:
    keep = Keeping(restarts=True)
    assert pauses(keep, *[FAILED] * (MOST + 1)) == [0.5, 2.0, 8.0, 32.0, 60.0, None]
    assert keep.too_many == MOST + 1 and keep.removes_unit and keep.code == FAILED


def test_ends_that_are_long_apart_do_not_count_together() -> None:
    keep = Keeping(restarts=True)
    assert pauses(keep, *[FAILED] * (2 * MOST), every_s=WINDOW_S + 1.0) == [0.5] * (2 * MOST)
    assert not keep.too_many


def test_a_start_that_fails_counts_as_an_end() -> None:
    keep = Keeping(restarts=True)
    assert keep.ended(FAILED, True, 0.0) == 0.5
    assert [keep.pause_s(1.0) for _ in range(MOST)] == [2.0, 8.0, 32.0, 60.0, None] and keep.too_many == MOST + 1


@pytest.mark.parametrize(("code", "removed"), [(OVER, True), (AWAY, False)])
def test_an_agent_that_ends_in_order_has_no_next_and_a_boot_continues_only_one_that_is_away(
    code: int, removed: bool
) -> None:
    keep = Keeping(restarts=True)
    assert pauses(keep, FAILED, code) == [0.5, None] and keep.removes_unit is removed and keep.code == code


@pytest.mark.parametrize("code", [FAILED, TAKEN, 2])
def test_a_next_agent_that_ends_otherwise_is_tried_again(code: int) -> None:
    keep = Keeping(restarts=True)
    assert pauses(keep, FAILED, code) == [0.5, 2.0]


def test_the_first_agent_that_cannot_begin_is_the_launchers_to_report() -> None:
    for code in (FAILED, TAKEN):
        keep = Keeping(restarts=True)
        assert keep.ended(code, False, 0.0) is None and not keep.removes_unit and not keep.too_many


def test_a_next_agent_that_cannot_begin_is_tried_again() -> None:
    keep = Keeping(restarts=True)
    assert [keep.ended(FAILED, begun, 0.0) for begun in (True, False, False)] == [0.5, 2.0, 8.0]


def test_an_attached_run_has_no_next_agent() -> None:
    keep = Keeping(restarts=False)
    assert keep.ended(FAILED, True, 0.0) is None and not keep.removes_unit
    assert keep.ended(OVER, True, 0.0) is None and keep.removes_unit


def test_the_records_belong_to_another_agent_only_where_that_has_the_name() -> None:
    assert [owns_records(code) for code in (OVER, FAILED, AWAY, TAKEN)] == [True, True, True, False]
