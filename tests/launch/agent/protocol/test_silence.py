"""A host is silent at once, and lost only when its own agent has surely killed its tasks."""

import pytest

from launch.agent.protocol.messages import Lost
from launch.agent.protocol.silence import WAKING_S, LauncherSilence, Silences


def test_a_host_whose_link_broke_is_silent_at_once_and_lost_a_margin_after_its_agent_killed_its_tasks() -> None:
    silences = Silences(["b", "c"], lost_after_s=10.0, now=0.0)
    silences.end("b")
    silences.end("c")
    silences.begin("b", 100.0)
    assert silences.silent(100.0) == ["b"] and silences.newly_lost(112.9) == []
    assert silences.newly_lost(114.0) == [Lost("b", 14.0)]
    assert silences.newly_lost(200.0) == [] and silences.silent(200.0) == ["b"]


def test_a_host_that_is_back_in_time_is_not_lost() -> None:
    silences = Silences(["b"], lost_after_s=10.0, now=0.0)
    silences.end("b")
    silences.begin("b", 100.0)
    silences.end("b")
    assert silences.silent(105.0) == [] and silences.newly_lost(1e6) == []


def test_a_silence_counts_from_when_the_host_was_last_heard_however_often_its_link_breaks() -> None:
    silences = Silences(["b"], lost_after_s=10.0, now=0.0)
    silences.end("b")
    silences.begin("b", 100.0)
    silences.begin("b", 108.0)  # a link that never brought a word
    assert (silences.length_s("b", 110.0), silences.length_s("c", 110.0)) == (10.0, 0.0)
    assert [lost.host for lost in silences.newly_lost(114.0)] == ["b"]


def test_a_host_whose_new_link_is_just_coming_is_spared() -> None:
    silences = Silences(["b"], lost_after_s=10.0, now=0.0)
    silences.end("b")
    silences.begin("b", 100.0)
    assert silences.newly_lost(120.0, spared={"b"}) == []
    assert [lost.host for lost in silences.newly_lost(120.0)] == ["b"]


def test_a_host_that_was_never_seen_is_silent_after_a_moment_and_never_lost() -> None:
    silences = Silences(["b"], lost_after_s=10.0, now=100.0)
    assert silences.silent(101.0) == [] and silences.silent(103.0) == ["b"]
    assert silences.newly_lost(1e6) == []


def test_a_lost_host_that_comes_back_can_be_lost_again() -> None:
    silences = Silences(["b"], lost_after_s=10.0, now=0.0)
    for at in (100.0, 200.0):
        silences.end("b")
        silences.begin("b", at)
        assert len(silences.newly_lost(at + 20.0)) == 1


def test_a_run_that_ends_waits_for_no_boot() -> None:
    silences = Silences(["b"], lost_after_s=10.0, now=0.0, patience={"b": 900.0})
    silences.end("b")
    silences.begin("b", 100.0)
    assert silences.newly_lost(114.0) == []
    assert silences.newly_lost(114.0, awaits_boots=False) == [Lost("b", 14.0)]


def test_a_host_that_a_boot_brings_back_has_a_patience_of_its_own() -> None:
    silences = Silences(["b", "c"], lost_after_s=10.0, now=0.0, patience={"c": 900.0})
    for host in ("b", "c"):
        silences.end(host)
        silences.begin(host, 100.0)
    assert [lost.host for lost in silences.newly_lost(114.0)] == ["b"]
    assert silences.silent(500.0) == ["b", "c"] and silences.newly_lost(999.0) == []
    assert silences.newly_lost(1001.0) == [Lost("c", 901.0)]


def test_the_silence_of_the_launcher_includes_a_suspension_once_it_had_time_to_speak() -> None:
    silence = LauncherSilence(100.0, 5000.0)
    assert (silence.length_s(104.0, 5004.0), silence.slept_s) == (4.0, 0.0)
    assert silence.length_s(105.0, 5065.0) == 5.0  # asleep for 60 s; a launcher on this machine has just woken, too
    assert silence.elsewhere_s(105.0, 5065.0) == 65.0
    assert silence.length_s(104.9 + WAKING_S, 5064.9 + WAKING_S) == pytest.approx(4.9 + WAKING_S)
    assert silence.length_s(105.1 + WAKING_S, 5065.1 + WAKING_S) == pytest.approx(65.1 + WAKING_S)
    assert silence.slept_s == 60.0
    silence.renew(110.0, 5070.0)
    assert (silence.length_s(115.0, 5075.0), silence.slept_s) == (5.0, 0.0)


def test_a_second_suspension_adds_up() -> None:
    silence = LauncherSilence(0.0, 0.0)
    assert silence.length_s(1.0, 11.0) == 1.0
    assert silence.length_s(2.0, 22.0) == 2.0
    assert silence.length_s(2.0 + WAKING_S, 22.0 + WAKING_S) == 22.0 + WAKING_S


def test_a_launcher_that_pauses_is_not_silent_however_long_the_machine_sleeps() -> None:
    silence = LauncherSilence(0.0, 0.0)
    silence.renew(1.0, 1.0, pauses=True)
    assert not any(silence.length_s(now, now + 1e4) > 0 for now in (10.0, 20.0, 1e5))
    silence.renew(1e5, 2e5)
    assert silence.length_s(1e5 + 2.0, 2e5 + 2.0) == 2.0


def test_a_beat_counts_from_the_answer_that_the_launcher_had_received() -> None:
    silence = LauncherSilence(0.0, 0.0)
    silence.confirm((9.0, 9.0), 10.0, 10.0)
    assert silence.length_s(12.0, 12.0) == 3.0
    silence.confirm((8.0, 8.0), 12.0, 12.0)  # of an older connection
    silence.confirm(None, 12.0, 12.0)  # the first one of a new connection
    assert silence.length_s(12.0, 12.0) == 3.0


def test_beats_of_before_a_suspension_that_arrive_after_it_leave_the_silence_as_long_as_it_is() -> None:
    silence = LauncherSilence(0.0, 0.0)
    assert silence.length_s(10.1, 60.1) == pytest.approx(10.1)  # has just woken after 50 s
    silence.confirm((9.0, 9.0), 10.2, 60.2)
    assert silence.length_s(10.2 + WAKING_S, 60.2 + WAKING_S) == pytest.approx(51.2 + WAKING_S)
    assert silence.slept_s == pytest.approx(50.0)
    silence.confirm((10.3, 60.3), 11.0, 61.0)  # this launcher has an answer of after the suspension
    assert silence.length_s(11.0, 61.0) == pytest.approx(0.7) and silence.slept_s == 0.0


def test_the_first_beat_after_a_pause_counts_as_new() -> None:
    silence = LauncherSilence(0.0, 0.0)
    silence.renew(1.0, 1.0, pauses=True)
    silence.confirm((0.5, 0.5), 90.0, 90.0)
    assert silence.length_s(92.0, 92.0) == 2.0
