"""The chief's host is asked one question at a time, and nobody waits long for its answer."""

import json
import threading
from typing import Any, Dict, List

from cluster.protocol.typed_json import to_values
from launch.errors import HostProblem, ProblemKind
from launch.monitoring.newest_state import FRESH_S, LeadAnswer, LeadConnection, NewestAnswer
from tests.support.launch.fakes import FakeChannel, FakeHost, fleet_of
from tests.support.launch.statuses import status
from tests.support.waiting import PATIENCE_S

NOTHING_MISSING = b'{"missing": []}\n'


def line(values: Dict[str, Any]) -> bytes:
    return json.dumps(values).encode() + b"\n"


# -- asking the chief's host


def test_the_chiefs_host_is_asked_over_one_conversation() -> None:
    answer = line({"status": to_values(status(global_step=7))})
    host = FakeHost("h1", FakeChannel(NOTHING_MISSING, answer, NOTHING_MISSING, answer))
    host.keeps = True
    lead = LeadConnection(fleet_of({"h1": host}))
    told = [lead.ask(), lead.ask()]
    assert [(each.status or status()).global_step for each in told] == [7, 7]
    assert len(host.opened) == 1


def test_a_connection_that_broke_is_made_anew_and_said() -> None:
    connected: List[str] = []
    good = FakeChannel(NOTHING_MISSING, line({"status": None}))
    host = FakeHost("h1", FakeChannel(OSError("reset")), good, connect=connected.append)
    lead = LeadConnection(fleet_of({"h1": host}))
    first = lead.ask()
    assert first.status is None and "the connection broke: reset" in (first.problem or "")
    assert lead.ask() == LeadAnswer(None, None)
    assert connected == ["h1"]


def test_a_host_that_stays_away_is_tried_each_time() -> None:
    def refuse(name: str) -> None:
        raise HostProblem(name, ProblemKind.UNREACHABLE, "no route")

    host = FakeHost("h1", connect=refuse)
    lead = LeadConnection(fleet_of({"h1": host}))
    assert [lead.ask().problem for _ in range(3)] == ["h1: out of reach", "h1: no route", "h1: no route"]


# -- one question at a time


class Asked:
    """Answers when it is let, and counts."""

    def __init__(self) -> None:
        self.count = 0
        self.may = threading.Event()

    def __call__(self) -> LeadAnswer:
        self.count += 1
        self.may.wait(PATIENCE_S)
        return LeadAnswer(status(global_step=self.count))


def test_an_answer_serves_every_scrape_for_a_while_and_is_then_asked_for_anew() -> None:
    asked, now = Asked(), [100.0]
    asked.may.set()
    newest = NewestAnswer(asked, lambda: now[0])
    for seconds, expected in ((0.0, 1), (FRESH_S / 2, 1), (FRESH_S, 2)):
        now[0] = 100.0 + seconds
        assert (newest.get().status or status()).global_step == expected
    newest.close()


def test_a_host_that_does_not_answer_keeps_no_scrape_waiting_and_is_asked_one_question() -> None:
    asked = Asked()
    newest = NewestAnswer(asked)
    assert newest.get(patience_s=0.0) == LeadAnswer(None, "no answer within 0 s")
    assert newest.get(patience_s=0.0).problem
    asked.may.set()
    assert (newest.get(PATIENCE_S).status or status()).global_step == 1
    assert asked.count == 1
    newest.close()
