"""One event is one POST; the answer decides about another try, and no line has a part of the URL."""

import socket
import threading
from typing import Dict, Iterator

import pytest

from launch.agent.hooks.post import LATER, NEVER, TAKEN, post
from tests.support.agent.http_receiver import HttpReceiver

EVENT = {"id": "r/failed", "text": "r has failed \u2026"}
SHORT_S = 0.2


@pytest.fixture
def answering(request: pytest.FixtureRequest) -> Iterator[HttpReceiver]:
    """A server that answers with the parameter."""
    with HttpReceiver(request.param) as server:
        yield server


@pytest.fixture
def mute() -> Iterator[socket.socket]:
    """A port that takes connections, and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        yield listener


def url_of(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}/key"


@pytest.mark.parametrize("answering", [200, 204], indirect=True)
def test_an_event_arrives_as_json_with_the_headers_of_the_file(answering: HttpReceiver) -> None:
    assert post(answering.url, {"Authorization": "Bearer x"}, EVENT) == (TAKEN, "")
    ((verb, path, headers, body),) = answering.got
    assert (verb, path, body) == ("POST", "/key", EVENT)
    assert (headers["Authorization"], headers["Content-Type"]) == ("Bearer x", "application/json")


@pytest.mark.parametrize("answering", [429, 500, 503], indirect=True)
def test_a_receiver_that_is_busy_or_broken_may_take_it_later(answering: HttpReceiver) -> None:
    answer = post(answering.url, {}, EVENT)
    assert answer.code == LATER and answer.line.startswith(f"it answered {answering.status} ")


@pytest.mark.parametrize("answering", [400, 401, 404], indirect=True)
def test_a_receiver_that_refuses_is_not_asked_again(answering: HttpReceiver) -> None:
    answer = post(answering.url, {}, EVENT)
    assert answer.code == NEVER and answer.line.startswith(f"it answered {answering.status} ")


@pytest.mark.parametrize("answering", [301, 302, 307], indirect=True)
def test_a_redirect_is_not_followed_since_it_would_lose_the_event(answering: HttpReceiver) -> None:
    answer = post(answering.url, {}, EVENT)
    assert answer.code == NEVER and answer.line.endswith(", a redirect, which is not followed")
    assert len(answering.got) == 1


def test_no_answer_in_time_is_worth_another_try(mute: socket.socket) -> None:
    assert post(url_of(mute), {}, EVENT, SHORT_S) == (LATER, "no answer within 0 s")


def test_a_port_where_nothing_listens_is_worth_another_try(mute: socket.socket) -> None:
    mute.close()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        assert post(url_of(free), {}, EVENT) == (LATER, "no connection: Connection refused")


@pytest.mark.parametrize("garbage", [b"", b"garbage\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n"])
def test_an_answer_that_is_no_http_is_worth_another_try(mute: socket.socket, garbage: bytes) -> None:
    def answer() -> None:
        caller, _ = mute.accept()
        with caller:
            caller.recv(65536)
            caller.sendall(garbage)

    answering = threading.Thread(target=answer)
    answering.start()
    found = post(url_of(mute), {}, EVENT)
    answering.join()
    assert found.code == LATER and "key" not in found.line


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("https://h/se cret", {}),
        ("https://h:se-cret/", {}),
        ("http://[se-cret/", {}),
        ("http://127.0.0.1:9/", {"A": "se\ncret"}),
    ],
)
def test_a_url_or_header_that_cannot_be_used_is_refused_without_its_text(url: str, headers: Dict[str, str]) -> None:
    answer = post(url, headers, EVENT)
    assert answer.code == NEVER and answer.line.startswith("its URL or a header cannot be used")
    assert "se" not in answer.line.replace("used", "")


def test_a_receiver_without_a_certificate_is_no_secure_connection(mute: socket.socket) -> None:
    def answer() -> None:
        caller, _ = mute.accept()
        with caller:
            caller.recv(65536)
            caller.sendall(b"HTTP/1.1 200 OK\r\n\r\n")

    answering = threading.Thread(target=answer)
    answering.start()
    found = post(url_of(mute).replace("http://", "https://"), {}, EVENT)
    answering.join()
    assert found.code == LATER and found.line.startswith("no secure connection: ")
