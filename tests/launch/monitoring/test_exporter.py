"""Scrapes are answered in bounded time with the newest status, whatever the chief's host does."""

import threading
import urllib.error
from contextlib import contextmanager
from dataclasses import replace
from typing import Iterator, List

import pytest

from launch.errors import CannotStart
from launch.monitoring.exporter import Exporter, RunCollector
from launch.monitoring.newest_state import LeadAnswer
from tests.launch.monitoring.web import fetch, served
from tests.support.launch.launcher import Launcher
from tests.support.launch.statuses import status
from tests.support.waiting import PATIENCE_S, eventually


@contextmanager
def exported(told: List[LeadAnswer], said: List[str]) -> Iterator[str]:
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
    lost = LeadAnswer(None, "h1: no route")
    newer = replace(status(global_step=2), run="r-2")
    with exported([LeadAnswer(status(global_step=1)), lost, lost, LeadAnswer(newer)], said) as url:
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
    collector = RunCollector("r", "h1", lambda: LeadAnswer(None), lambda _: None)
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
