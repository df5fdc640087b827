"""Steps that training goes back are counted once, whoever reports them first."""

from launch.agent.supervision.stall import Stalls


def test_a_fall_that_others_report_when_the_chief_is_past_it_counts_once() -> None:
    """The chief goes from 103 to 100 and on to 107 before reports of another come: a simulated history found it."""
    stalls = Stalls()
    for now, step in [(1.0, 101), (2.0, 103)]:
        stalls.record("worker:0", {"step": step, "examples": step, "checkpoint_step": 100}, now, chief=True)
        stalls.record("worker:1", {"step": step, "examples": step}, now)
    for now, step in [(3.0, 102), (4.0, 107)]:
        stalls.record("worker:0", {"step": step, "examples": step + 3, "checkpoint_step": 100}, now, chief=True)
    assert stalls.steps_lost == 3
    stalls.record("worker:1", {"step": 102, "examples": 106}, 5.0)
    assert stalls.steps_lost == 3
    stalls.record("worker:1", {"step": 108, "examples": 112}, 6.0)
    stalls.record("worker:1", {"step": 104, "examples": 116}, 7.0)  # another one
    assert stalls.steps_lost == 3 + 5


def test_a_fall_whose_first_step_is_saved_counts_once() -> None:
    """The chief saves at the first step after the return, as somebody has asked for: a simulated history found it."""
    stalls = Stalls()
    for task in ("worker:0", "worker:1"):
        known = {"checkpoint_step": 200} if task == "worker:0" else {}
        stalls.record(task, {"step": 213, "examples": 213, **known}, 1.0, chief=bool(known))
    stalls.record("worker:0", {"step": 201, "examples": 214, "checkpoint_step": 201}, 2.0, chief=True)
    assert stalls.steps_lost == 13
    stalls.record("worker:1", {"step": 201, "examples": 214}, 3.0)
    assert stalls.steps_lost == 13


def test_a_worker_that_had_no_step_under_the_lead_before_returns_from_the_newest() -> None:
    """Two leads died, the second before anybody trained again: a simulated history found that nothing was lost."""
    stalls = Stalls()
    stalls.restore(263, 1.0, None, {"worker:0": None, "worker:1": 262})
    for task in ("worker:0", "worker:1"):
        stalls.record(task, {"step": 251, "examples": 1, "checkpoint_step": 250}, 2.0, chief=task == "worker:0")
    assert stalls.steps_lost == 13


def test_a_report_from_before_a_fall_that_arrives_after_it_is_no_training() -> None:
    """Worker 1's step 42 came after worker 0's return from 41 to 25: a simulated history counted 33 lost steps."""
    stalls = Stalls()
    for task, step in [("worker:0", 41), ("worker:1", 38)]:
        stalls.record(task, {"step": step, "examples": step}, 1.0)
    stalls.record("worker:0", {"step": 26, "examples": 42, "checkpoint_step": 25}, 8.0, chief=True)
    assert not stalls.record("worker:1", {"step": 42, "examples": 42}, 8.6) and stalls.newest == 42
    stalls.record("worker:0", {"step": 28, "examples": 44, "checkpoint_step": 25}, 9.1, chief=True)
    assert stalls.is_from_before("worker:1")
    stalls.record("worker:1", {"step": 26, "examples": 43}, 13.8)
    assert stalls.steps_lost == 42 - 25


def test_a_worker_that_passes_a_fall_unseen_is_believed_once_others_have_passed_it_or_some_seconds_later() -> None:
    for others, at in [(True, 5.0), (False, 13.0)]:
        stalls = Stalls()
        for task in ("worker:0", "worker:1"):
            stalls.record(task, {"step": 41, "examples": 41}, 1.0)
        stalls.record("worker:0", {"step": 41 - 1, "examples": 42, "checkpoint_step": 39}, 2.0, chief=True)
        if others:
            stalls.record("worker:0", {"step": 43, "examples": 45, "checkpoint_step": 39}, 3.0, chief=True)
        assert stalls.record("worker:1", {"step": 50, "examples": 52}, at)
        stalls.record("worker:1", {"step": 46, "examples": 56}, at + 1)  # another fall
        assert stalls.steps_lost == 2 + (50 - 45)


def test_a_worker_that_was_away_for_a_fall_adds_to_that_fall_what_it_alone_has_lost() -> None:
    """Its host was lost, and returned with the next fall: a simulated history counted its 20 steps against the 5."""
    for own, lost in [(20, 20), (22, 22)]:
        stalls = Stalls()
        stalls.record("worker:1", {"step": own, "examples": own}, 1.0)
        for now, step in [(1.1, 20), (15.0, 1), (17.0, 5), (30.0, 1)]:
            stalls.record("worker:0", {"step": step, "examples": now, "checkpoint_step": 0}, now, chief=True)
        stalls.restart_examples("worker:1")
        stalls.record("worker:1", {"step": 1, "examples": 1}, 30.1)
        assert stalls.steps_lost == lost


def test_a_worker_that_was_away_for_two_falls_and_is_back_loses_only_later_steps_with_the_third() -> None:
    stalls = Stalls()
    for task in ("worker:0", "worker:1"):
        stalls.record(task, {"step": 8, "examples": 8}, 1.0)
    for now, step, saved in [(15.0, 1, 0), (40.0, 70, 50), (60.0, 51, 50)]:
        stalls.record("worker:0", {"step": step, "examples": now, "checkpoint_step": saved}, now, chief=True)
    stalls.restart_examples("worker:1")
    stalls.record("worker:1", {"step": 51, "examples": 1}, 60.1)
    for task in ("worker:0", "worker:1"):
        stalls.record(task, {"step": 60, "examples": 70, "checkpoint_step": 50}, 65.0, chief=task == "worker:0")
    for task in ("worker:1", "worker:0"):
        stalls.record(task, {"step": 51, "examples": 71, "checkpoint_step": 50}, 80.0, chief=task == "worker:0")
    assert 20 <= stalls.steps_lost <= 8 + 20 + 10


def test_what_a_late_report_adds_to_a_fall_counts_once_if_the_next_fall_comes_first() -> None:
    stalls = Stalls()
    for task, step in [("worker:0", 41), ("worker:1", 38)]:
        stalls.record(task, {"step": step, "examples": step}, 1.0)
    for task, now, step, examples in [("worker:0", 8.0, 26, 42), ("worker:1", 8.6, 50, 50)]:  # worker 1's is of before
        stalls.record(task, {"step": step, "examples": examples, "checkpoint_step": 25}, now, chief=task == "worker:0")
    for now, step in [(16.0, 26), (16.5, 27), (24.0, 26)]:
        stalls.restart_examples("worker:0")
        stalls.record("worker:0", {"step": step, "examples": step, "checkpoint_step": 25}, now, chief=True)
    stalls.restart_examples("worker:1")
    stalls.record("worker:1", {"step": 26, "examples": 1}, 24.1)
    assert 16 <= stalls.steps_lost <= (50 - 25) + (27 - 25)


def test_a_checkpoint_that_is_passed_over_costs_the_same_whether_the_lead_knew_of_it_or_not() -> None:
    """A power cut damaged the newest one, which the chief had reported to nobody."""
    for known in (600, 605):
        stalls = Stalls()
        stalls.restore(known, 1.0, None, {"worker:0": known, "worker:1": known})
        stalls.pass_over("worker:0", 605, 120, 20.0)
        stalls.record("worker:0", {"step": 121, "examples": 1, "checkpoint_step": 120}, 20.0, chief=True)
        assert stalls.steps_lost == 605 - 120


def test_steps_that_a_resumed_run_has_passed_over_count_also_where_a_worker_reports_before_the_chief() -> None:
    """The worker's step is from after the restore: a simulated history lost 12 steps for 13."""
    for others in (121, 130, 610):
        stalls, joined = Stalls(), {"examples": 1, "joins": 1, "joined_step": 120}
        stalls.record("worker:1", {**joined, "step": others}, 5.0)
        stalls.pass_over("worker:0", 605, 120, 6.0)
        stalls.record("worker:0", {**joined, "step": others + 1}, 6.0, chief=True)
        assert stalls.steps_lost == stalls.losses_since(0.0)[0] == 605 - 120


def test_a_fall_whose_top_is_passed_before_the_next_report_counts_by_the_step_at_which_workers_joined() -> None:
    """The lead stood for 5 s while all started again: in a simulated history its next reports were beyond the top."""
    stalls = Stalls()
    for joined, now, steps in [(0, 1.0, (79, 81)), (75, 10.0, (86, 86)), (75, 11.0, (88, 88))]:
        for task, step in zip(("worker:0", "worker:1"), steps):
            if now == 10.0:
                stalls.restart_examples(task)
            progress = {"step": step, "examples": step - joined, "joins": 1, "joined_step": joined}
            stalls.record(task, {**progress, "checkpoint_step": 75}, now, chief=task == "worker:0")
    assert stalls.steps_lost == 81 - 75 and stalls.resumption_since(2.0) == 75


def test_a_process_that_joins_twice_at_one_checkpoint_has_gone_back_twice() -> None:
    stalls = Stalls()
    for now, joins, step in [(1.0, 1, 41), (9.0, 2, 41), (10.0, 2, 44), (20.0, 3, 47)]:
        progress = {"step": step, "examples": now, "checkpoint_step": 40, "joins": joins, "joined_step": 40}
        stalls.record("worker:0", progress, now, chief=True)
    assert stalls.steps_lost == 1 + 4


def test_a_worker_that_joins_again_alone_has_lost_nothing() -> None:
    stalls = Stalls()
    for now, joined, step in [(1.0, 0, 41), (9.0, 41, 42), (20.0, 60, 61)]:
        stalls.restart_examples("worker:1")
        stalls.record("worker:1", {"step": step, "examples": 1, "joins": 1, "joined_step": joined}, now)
    assert stalls.steps_lost == 0


def test_a_return_that_only_an_old_report_shows_does_not_count_again_with_the_next_one() -> None:
    """Its agent was stopped from before the first return on: a simulated history counted 33 steps twice."""
    stalls = Stalls()
    joined = {"joins": 1, "joined_step": 0}
    for task in ("worker:0", "worker:1"):
        stalls.record(task, {"step": 163, "examples": 163, **joined}, 1.0, chief=task == "worker:0")
    for now, step, begun in [(5.0, 151, 150), (25.0, 196, 150), (30.0, 176, 175)]:
        if step < 196:
            stalls.restart_examples("worker:0")
        stalls.record("worker:0", {"step": step, "examples": step, "joins": 1, "joined_step": begun}, now, chief=True)
        if step == 196:
            stalls.restart_examples("worker:1")
            for old in (195, 196):
                progress = {"step": old, "examples": old, "joins": 1, "joined_step": 150}
                assert not stalls.record("worker:1", progress, now, is_old=True)
    stalls.restart_examples("worker:1")
    stalls.record("worker:1", {"step": 176, "examples": 1, "joins": 1, "joined_step": 175}, 31.0)
    assert stalls.steps_lost == (163 - 150) + (196 - 175)


def test_steps_up_to_a_checkpoint_that_the_chief_passes_over_count_once() -> None:
    """Whoever reports the return first, and also where a late report has such a step: a simulated history found it."""
    for chief_is_first in (True, False):
        stalls = Stalls()
        stalls.restore(73, 1.0, None, {"worker:0": 72, "worker:1": 73, "worker:2": 73})
        back = {"step": 51, "examples": 1, "joins": 1, "joined_step": 50}
        if not chief_is_first:
            stalls.record("worker:1", back, 5.0)
        stalls.pass_over("worker:0", 75, 50, 6.0)
        stalls.record("worker:0", back, 6.0, chief=True)
        assert stalls.steps_lost == 75 - 50
        stalls.record("worker:1", {**back, "step": 52, "examples": 2}, 7.0)
        stalls.record("worker:2", {"step": 74, "examples": 74}, 7.0)
        stalls.restart_examples("worker:2")
        stalls.record("worker:2", back, 8.0)
        assert stalls.steps_lost == 75 - 50


def test_a_worker_that_is_back_and_reports_beyond_the_newest_return_before_others_has_lost_nothing() -> None:
    """It was away for two returns, and its first step seemed to be from before: a simulated history lost 23 for 12."""
    stalls = Stalls()
    stalls.record("worker:1", {"step": 1, "examples": 1, "joins": 1, "joined_step": 0}, 1.0)
    for now, joins, joined, step in [(5.0, 1, 0, 26), (23.0, 2, 25, 26), (27.0, 2, 25, 36), (35.0, 3, 25, 26)]:
        progress = {"step": step, "examples": now, "joins": joins, "joined_step": joined}
        stalls.record("worker:0", progress, now, chief=True)
    for task, now, step in [("worker:1", 43.1, 37), ("worker:0", 43.2, 37), ("worker:1", 44.8, 41)]:
        if now < 44.0:
            stalls.restart_examples(task)
        progress = {"step": step, "examples": step - 36, "joins": 1, "joined_step": 36}
        stalls.record(task, progress, now, chief=task == "worker:0")
    assert stalls.steps_lost == (26 - 25) + (36 - 25) and not stalls.is_from_before("worker:1")


def test_a_worker_that_joins_once_others_have_taken_the_lost_steps_again_has_lost_nothing() -> None:
    """Steps take a millisecond, and the chief's next report is still to come; with a ps alone, its process lives on."""
    for restarts in (True, False):
        stalls = Stalls()
        for task in ("worker:0", "worker:1"):
            progress = {"step": 125, "examples": 125, "joins": 1, "joined_step": 0}
            stalls.record(task, progress, 1.0, chief=task == "worker:0")
        for task, now, joined, step in [("worker:0", 9.0, 100, 101), ("worker:1", 9.5, 524, 525)]:
            if restarts:
                stalls.restart_examples(task)
            progress = {"step": step, "examples": step, "joins": 1 if restarts else 2, "joined_step": joined}
            stalls.record(task, progress, now, chief=task == "worker:0")
        stalls.record("worker:1", {**progress, "step": 1525, "examples": 1525}, 10.5)
        assert stalls.steps_lost == 125 - 100


def test_a_report_of_before_a_pause_that_is_beyond_a_return_is_from_after_it() -> None:
    """Its agent had stopped, and knew no step that this return lost: a simulated history lost 61 steps for 24."""
    stalls = Stalls()
    for now, joins, joined, step in [(5.0, 1, 0, 56), (33.0, 2, 50, 51), (48.0, 2, 50, 90)]:
        progress = {"step": step, "examples": now, "joins": joins, "joined_step": joined}
        stalls.record("worker:0", progress, now, chief=True)
        if joins == 1:
            stalls.record("worker:2", {**progress, "step": 35}, now)
    late = {"step": 93, "examples": 100, "joins": 2, "joined_step": 50}
    stalls.record("worker:2", late, 52.0, is_old=True)
    for task in ("worker:2", "worker:0"):
        stalls.restart_examples(task)
        progress = {"step": 76, "examples": 1, "joins": 1, "joined_step": 75}
        stalls.record(task, progress, 56.0, chief=task == "worker:0")
    assert stalls.steps_lost == (56 - 50) + (93 - 75)


def test_a_worker_that_lost_nothing_by_a_return_is_not_compared_with_the_step_before_it() -> None:
    """Worker 1 reported that return only when worker 0 was beyond it: a simulated history lost 6 steps for 5."""
    for saved, orders in [(75, ["01", "10"]), (88, ["01", "10"]), (75, ["0"])]:
        for order in orders:
            stalls = Stalls()
            for task, step, joins, joined in [("0", 50, 1, 0), ("1", 51, 1, 0), ("0", 51, 2, 50), ("0", 90, 2, 50),
                                              ("1", 90, 2, 50)]:  # fmt: skip
                progress = {"step": step, "examples": step + joins, "joins": joins, "joined_step": joined}
                stalls.record(task, progress, 20.0 + step, chief=task == "0")
            for task in order:
                stalls.restart_examples(task)
                progress = {"step": saved + 1, "examples": 1, "joins": 1, "joined_step": saved}
                stalls.record(task, progress, 130.0, chief=task == "0")
            assert stalls.steps_lost == (51 - 50) + (90 - saved)
