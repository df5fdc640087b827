"""The live page is for who has its address alone, and shows what was recorded last with what is wrong."""

import json
import threading
from typing import Any, Callable, Dict, List, Tuple

import pytest

from launch.monitoring.newest_state import LeadAnswer
from launch.monitoring.page_server import PageServer, Repeated
from launch.status.run import RunStatus
from tests.launch.monitoring.web import fetch, served
from tests.launch.page.test_document import values_in
from tests.support.launch.launcher import Launcher
from tests.support.launch.statuses import history, status
from tests.support.waiting import PATIENCE_S, eventually

STEPS = {"lines": ["no task has recorded a step"], "windows": {}}
LOGS = {"lines": ["ps:0@h1 up"], "missing": []}


def server(*told: LeadAnswer, steps: Callable[[RunStatus], Dict[str, Any]] = lambda known: STEPS) -> PageServer:
    answers = list(told)
    return PageServer(status(global_step=1, loss=3.0), "token", lambda: answers.pop(0), lambda: LOGS, steps)


def ask(page: PageServer, path: str, host: str = "127.0.0.1:80", method: str = "GET") -> Tuple[str, str]:
    """The status line and the content of an answer."""
    answered: List[str] = []
    environ = {"SERVER_PORT": "80", "HTTP_HOST": host, "REQUEST_METHOD": method, "PATH_INFO": path}
    content = b"".join(page(environ, lambda line, headers: answered.append(line)))
    return answered[0], content.decode()


def state(page: PageServer) -> Dict[str, Any]:
    found: Dict[str, Any] = json.loads(ask(page, "/token/status.json")[1])
    return found


@pytest.mark.parametrize(
    "path", ["/", "", "/token", "/tokens/", "/wrong/status.json", "/\xff/", "/token/../x", "/token//"]
)
def test_who_does_not_know_the_whole_address_gets_nothing(path: str) -> None:
    line, content = ask(server(), path)
    assert line == "404 Not Found" and "r-1" not in content


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:81", "", "localhost.evil.example:80"])
def test_another_host_name_is_refused(host: str) -> None:
    line, content = ask(server(), "/token/", host)
    assert line == "403 Forbidden" and "r-1" not in content


def test_only_get_is_answered() -> None:
    assert ask(server(), "/token/", method="POST")[0] == "405 Method Not Allowed"


@pytest.mark.parametrize("host", ["127.0.0.1:80", "localhost:80"])
def test_the_address_has_the_live_page(host: str) -> None:
    line, content = ask(server(), "/token/", host)
    assert line == "200 OK" and values_in(content)["live"] is True


def test_the_curve_is_that_of_the_run_from_its_first_step() -> None:
    page = server(LeadAnswer(status(global_step=3, history=history([(1, 3.0), (2, 1.5), (3, 1.0)]))))
    page.record()
    assert state(page)["facts"]["points"] == [[1, 3.0], [2, 1.5], [3, 1.0]]


def test_a_lead_that_is_lost_leaves_the_last_status_with_the_reason_until_it_is_back() -> None:
    page = server(
        LeadAnswer(None, "h1: no route"), LeadAnswer(None), LeadAnswer(status(global_step=5, state="succeeded"))
    )
    page.record()
    assert (state(page)["problem"], state(page)["facts"]["step"]) == ("h1: no route", 1)
    page.record()
    assert state(page)["problem"] == "no run of this name is there any more"
    page.record()
    assert (state(page)["problem"], state(page)["facts"]["state"]) == (None, "succeeded")


def test_logs_are_read_only_while_a_page_asks_for_them() -> None:
    page = server()
    page.logs.record()
    assert json.loads(ask(page, "/token/logs.json")[1]) is None  # nobody has read them
    page.logs.record()
    assert json.loads(ask(page, "/token/logs.json")[1]) == LOGS


def test_calls_are_repeated_while_entered() -> None:
    called = threading.Semaphore(0)
    with Repeated([(lambda: called.release(), 0.001)]):
        assert all(called.acquire(timeout=PATIENCE_S) for _ in range(3))


def test_the_verb_serves_a_run_on_this_machine_to_its_end(launch: Launcher) -> None:
    launch.stay()
    assert launch("up", "-d").returncode == 0
    try:
        with served(launch.begin("view")) as url:
            assert values_in(fetch(url))["facts"]["state"] == "running"
            eventually("lines of the logs", lambda: "worker:1@localhost up" in fetch(url + "logs.json"))
            assert launch("down").returncode == 0
            eventually("the end", lambda: json.loads(fetch(url + "status.json"))["facts"]["state"] == "stopped")
    finally:
        launch.end()


def test_steps_are_read_while_a_page_asks_for_them_with_the_newest_status() -> None:
    known: List[Any] = []

    def steps(newest: RunStatus) -> Dict[str, Any]:
        known.append(newest.global_step)
        return STEPS

    page = server(LeadAnswer(status(global_step=2)), steps=steps)
    page.steps.record()
    assert (ask(page, "/token/steps.json")[1], known) == ("null", [])
    page.record()
    page.steps.record()
    assert (json.loads(ask(page, "/token/steps.json")[1]), known) == (STEPS, [2])
