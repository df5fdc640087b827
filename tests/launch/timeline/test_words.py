"""The lines about past steps: who gave last, what took long and why, and what is not known."""

from dataclasses import replace

from launch.agent.wire.flight import Exchanged, Flight
from launch.timeline.drawing import NONE, clock, lines
from launch.timeline.flights import HostSpans, time_line
from tests.launch.timeline.simulated import STEP_S, Recording


def slow_second(worker: int, step: int) -> float:
    return STEP_S * (3 if worker == (0 if step % 4 == 0 else 1) else 1)


def test_who_gave_last_is_known_without_a_common_clock() -> None:
    found = Recording([0.0, 99.0]).take(40, slow_second).line(common_steps=False)
    assert "last to send its gradient, of 40 steps: worker:1@gpu1 in 30, worker:0@gpu0 in 10" in lines(found)


def test_a_step_of_which_a_worker_has_no_record_proves_nothing() -> None:
    recording = Recording([0.0, 0.0]).take(40, slow_second)
    del recording.spans[0][:10]
    (line,) = [line for line in lines(recording.line()) if line.startswith("last to send")]
    assert line.startswith("last to send its gradient, of 30 steps: worker:1@gpu1 in ")


def test_few_steps_prove_nothing() -> None:
    assert not any("last to send" in line for line in lines(Recording([0.0, 0.0]).take(5, slow_second).line()))


def test_a_long_step_is_named_with_what_happened_meanwhile() -> None:
    recording = Recording([0.0, 0.0]).take(20).pause(0, "saving", 4.0).take(20)
    began = recording.spans[1][20]["began"]
    assert [line for line in lines(recording.line()) if line.startswith("long")] == [
        f"long step 21: 4.1 s at worker:1@gpu1 from {clock(began)}, of which it waited 4.0 s;"
        " meanwhile: worker:0@gpu0 saving 4.0 s",
        f"long saving at step 20: 4.0 s at worker:0@gpu0 from {clock(began)}",
    ]


def test_a_start_after_the_first_is_a_pause_and_is_named_once() -> None:
    recording = Recording([0.0, 0.0]).pause_all("starting", 20.0).take(30).pause_all("starting", 6.0).take(10)
    began = recording.spans[0][31]["began"]
    (line,) = [line for line in lines(recording.line()) if line.startswith("long")]
    where = f"6.0 s at worker:1@gpu1 from {clock(began)}; meanwhile: worker:0@gpu0 starting 6.0 s"
    assert line == f"long starting at step 30: {where}"


def test_steps_of_one_length_have_no_long_one() -> None:
    assert not any("long step" in line for line in lines(Recording([0.0]).take(50, lambda *_: 3.0).line()))


def test_what_workers_know_of_a_ps_is_reported_as_theirs() -> None:
    recording = Recording([0.0, 0.0], parts=True).take(20)
    worker = replace(recording.flight(0), exchanged=[Exchanged(1, 4096), Exchanged(3, 8192)])
    ps = Flight("ps:0", recording.now, "it has no flight recorder")
    answers = {"gpu0": HostSpans([worker]), "cpu0": HostSpans([ps])}
    found = lines(time_line(answers, recording.status(), "gpu0", True))
    assert "ps:0: each exchange of a worker has 1 push and as many pulls, 4,096 bytes of variables" in found
    assert "ps:1: each exchange of a worker has 3 pushes and as many pulls, 8,192 bytes of variables" in found
    assert "workers waited longest for, of 20 steps: ps:1 in 20" in found
    assert found.count("a ps runs no steps of its own: the lines about it show the exchange that workers recorded")
    assert not any("ps:0@cpu0" in line for line in found)  # it lacks nothing


def test_clocks_that_are_not_known_are_named() -> None:
    found = lines(Recording([0.0, 5.0]).take(3).line(common_steps=False))
    assert "gpu1: its clock's offset from that of gpu0 is unknown" in found


def test_a_thousand_hosts_have_a_bounded_number_of_lines() -> None:
    recording = Recording([float(ahead) for ahead in range(1000)]).take(1)
    assert len(lines(recording.line(common_steps=False))) < 20
    exact = [line for line in lines(Recording([0.0] * 1000, parts=True).take(2).line()) if "exact" in line]
    assert len(exact) == 1 and "the least exact are those of gpu" in exact[0]


def test_torn_records_and_a_task_without_any_are_named() -> None:
    recording = Recording([0.0, 0.0]).take(3)
    torn = replace(recording.flight(0), torn=2)
    none = Flight("worker:1", recording.now, "its spans cannot be read: expected 9 bytes, found 3")
    answers = {"gpu0": HostSpans([torn]), "gpu1": HostSpans([none])}
    found = lines(time_line(answers, recording.status(), "gpu0", True))
    assert "worker:0@gpu0: 2 torn records left out" in found
    assert "worker:1@gpu1: its spans cannot be read: expected 9 bytes, found 3" in found


def test_a_run_of_programs_says_that_they_have_no_recorder() -> None:
    answers = {"gpu0": HostSpans([Flight("worker:0", 1.0, "none")])}
    assert lines(time_line(answers, None, "gpu0", False)) == [f"no task has recorded a step; {NONE}"]
