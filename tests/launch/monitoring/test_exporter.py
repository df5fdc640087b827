"""Scrapes are answered in bounded time with the newest status, whatever the chief's host does."""

import json
import threading
import urllib.error
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Dict, Iterator, List

import pytest

from launch.errors import CannotStart, HostProblem, ProblemKind
from launch.monitoring.exporter import FRESH_S, Exporter, Lead, Newest, RunCollector, Told
from launch.status.values import to_values
from tests.launch.monitoring.web import fetch, served
from tests.support.launch.fakes import FakeChannel, FakeHost, fleet_of
from tests.support.launch.launcher import Launcher
from tests.support.launch.statuses import status
from tests.support.waiting import eventually

NOTHING_MISSING = b'{"missing": []}\n'
PATIENCE_S = 30.0


def line(values: Dict[str, Any]) -> bytes:
    return json.dumps(values).encode() + b"\n"


# -- asking the chief's host


def test_the_chiefs_host_is_asked_over_one_conversation() -> None:
    answer = line({"status": to_values(status(global_step=7))})
    host = FakeHost("h1", FakeChannel(NOTHING_MISSING, answer, NOTHING_MISSING, answer))
    host.keeps = True
    lead = Lead(fleet_of({"h1": host}))
    told = [lead.ask(), lead.ask()]
    assert [(each.status or status()).global_step for each in told] == [7, 7]
    assert len(host.opened) == 1


def test_a_connection_that_broke_is_made_anew_and_said() -> None:
    connected: List[str] = []
    good = FakeChannel(NOTHING_MISSING, line({"status": None}))
    host = FakeHost("h1", FakeChannel(OSError("reset")), good, connect=connected.append)
    lead = Lead(fleet_of({"h1": host}))
    first = lead.ask()
    assert first.status is None and "the connection broke: reset" in (first.problem or "")
    assert lead.ask() == Told(None, None)
    assert connected == ["h1"]


def test_a_host_that_stays_away_is_tried_each_time() -> None:
    def refuse(name: str) -> None:
        raise HostProblem(name, ProblemKind.UNREACHABLE, "no route")

    host = FakeHost("h1", connect=refuse)
    lead = Lead(fleet_of({"h1": host}))
    assert [lead.ask().problem for _ in range(3)] == ["h1: out of reach", "h1: no route", "h1: no route"]


# -- one question at a time


class Asked:
    """Answers when it is let, and counts."""

    def __init__(self) -> None:
        self.count = 0
        self.may = threading.Event()

    def __call__(self) -> Told:
        self.count += 1
        self.may.wait(PATIENCE_S)
        return Told(status(global_step=self.count))


def test_an_answer_serves_every_scrape_for_a_while_and_is_then_asked_for_anew() -> None:
    asked, now = Asked(), [100.0]
    asked.may.set()
    newest = Newest(asked, lambda: now[0])
    for seconds, expected in ((0.0, 1), (FRESH_S / 2, 1), (FRESH_S, 2)):
        now[0] = 100.0 + seconds
        assert (newest.get().status or status()).global_step == expected
    newest.close()


def test_a_host_that_does_not_answer_keeps_no_scrape_waiting_and_is_asked_one_question() -> None:
    asked = Asked()
    newest = Newest(asked)
    assert newest.get(patience_s=0.0) == Told(None, "no answer within 0 s")
    assert newest.get(patience_s=0.0).problem
    asked.may.set()
    assert (newest.get(PATIENCE_S).status or status()).global_step == 1
    assert asked.count == 1
    newest.close()


# -- over HTTP


@contextmanager
def exported(told: List[Told], said: List[str]) -> Iterator[str]:
    """An exporter that tells each of ``told`` once; its URL."""
    over = threading.Event()
    collector = RunCollector("r", "h1", lambda: told.pop(0), said.append)
    with Exporter(collector, "127.0.0.1", 0) as exporter:
        serving = threading.Thread(target=exporter.serve, args=(over.is_set,))
        serving.start()
        yield f"http://127.0.0.1:{exporter.port}/metrics"
        over.set()
        serving.join(PATIENCE_S)


def test_each_scrape_tells_of_now_and_a_host_that_is_lost_and_found_is_said_once() -> None:
    said: List[str] = []
    lost = Told(None, "h1: no route")
    newer = replace(status(global_step=2), run="r-2")
    with exported([Told(status(global_step=1)), lost, lost, Told(newer)], said) as url:
        first, second, third, fourth = (fetch(url) for _ in range(4))
    assert 'launch_step{name="r"} 1.0\n' in first and 'launch_up{host="h1",name="r"} 1.0\n' in first
    for text in (second, third):
        assert 'launch_up{host="h1",name="r"} 0.0\n' in text and "launch_step{" not in text
    assert 'launch_step{name="r"} 2.0\n' in fourth and 'launch_run_info{name="r",run="r-2"} 1.0\n' in fourth
    assert said == ["h1: no route", "h1: answers again"]


def test_nothing_is_asked_before_the_first_scrape() -> None:
    with exported([], []) as url:
        assert url


def test_after_the_end_nothing_listens_any_more() -> None:
    with exported([], []) as url:
        pass
    with pytest.raises(urllib.error.URLError):
        fetch(url)


@pytest.mark.parametrize("address", ["127.0.0.1", "203.0.113.1"])
def test_an_address_that_cannot_be_had_is_told_of(address: str) -> None:
    collector = RunCollector("r", "h1", lambda: Told(None), lambda _: None)
    with Exporter(collector, "127.0.0.1", 0) as first, pytest.raises(CannotStart) as caught:
        Exporter(collector, address, first.port)
    expected = f"this machine: cannot listen on {address} port {first.port}: "
    assert str(caught.value).startswith(expected) and "give another --port or --address" in str(caught.value)


def test_the_verb_serves_the_newest_run_on_this_machine_until_ctrl_c(launch: Launcher) -> None:
    launch.stay()
    assert launch("up", "-d").returncode == 0
    try:
        with served(launch.begin("metrics", "--port", "0")) as url:
            eventually("a scrape", lambda: 'launch_tasks{name="r",role="worker",state="running"} 2.0\n' in fetch(url))
            assert launch("down").returncode == 0
            eventually("the end", lambda: 'launch_run_state{name="r",state="stopped"} 1.0\n' in fetch(url))
    finally:
        launch.end()


def test_a_name_without_runs_is_served_as_a_host_that_answers(launch: Launcher) -> None:
    launch.write()
    with served(launch.begin("metrics", "--port", "0")) as url:
        eventually("a scrape", lambda: 'launch_up{host="localhost",name="r"} 1.0\n' in fetch(url))
        assert "launch_run_info{" not in fetch(url)
