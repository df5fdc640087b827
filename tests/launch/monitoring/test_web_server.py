"""Clients that send half a request, garbage, or nothing, or that go early: no traceback, and an end in bounded time."""

import socket
import struct
import threading
from typing import Any, Callable, Iterator, List

import pytest

from launch.monitoring import web_server
from launch.monitoring.web_server import WebServer
from tests.support.waiting import PATIENCE_S, eventually, let_pass

pytestmark = pytest.mark.not_fast  # waits for clients that are silent

HALF = {
    "nothing": b"",
    "half a first line": b"GET /metr",
    "half of the headers": b"GET /metrics HTTP/1.1\r\nHost: a\r\nX",
    "half a body": b"POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\nabc",
}
GARBAGE = {
    "a greeting of TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)) * 2,
    "a greeting of ssh": b"SSH-2.0-OpenSSH_8.4\r\n",
    "zeros": b"\0" * 5000 + b"\r\n\r\n",
    "no version": b"GET\r\n\r\n",
    "a strange version": b"GET / HTTP/9.9.9\r\n\r\n",
    "a long first line": b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
    "a long header": b"GET / HTTP/1.1\r\nA: " + b"a" * 100_000 + b"\r\n\r\n",
    "many headers": b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 1000 + b"\r\n",
    "no name of a header": b"GET / HTTP/1.1\r\n: b\r\n\xff\xfe\r\n\r\n",
    "a strange length": b"GET / HTTP/1.1\r\nContent-Length: -1e9\r\n\r\n",
    "percent": b"GET /%ff%fe%00 HTTP/1.0\r\n\r\n",
}


def application(environ: Any, start: Callable[..., Any]) -> List[bytes]:
    """Answers with as much as no buffer of a socket has room for."""
    start("200 OK", [("Content-Type", "text/plain")])
    return [b"x" * (1 << 23)]


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[int]:
    """A server that gives half a second; in the end all its threads have ended, and it has printed nothing."""
    monkeypatch.setattr(web_server, "REQUEST_S", 0.5)
    monkeypatch.setattr(web_server._Quiet, "timeout", 0.5)
    before, over = threading.active_count(), threading.Event()
    with WebServer(application, "127.0.0.1", 0) as server:
        serving = threading.Thread(target=server.serve, args=(over.is_set,))
        serving.start()
        try:
            yield server.port
            eventually("the end of each answer", lambda: threading.active_count() <= before + 1)
        finally:
            over.set()
            serving.join()
    assert capfd.readouterr() == ("", "")


def client(port: int, sent: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
    connection.sendall(sent)
    return connection


def rest(connection: socket.socket) -> bytes:
    """All that comes until the server closes."""
    parts: List[bytes] = []
    try:
        while parts[-1:] != [b""]:
            parts.append(connection.recv(1 << 16))
    except ConnectionResetError:
        pass
    return b"".join(parts)


@pytest.mark.parametrize("sent", HALF)
def test_half_a_request_ends_in_time(port: int, sent: str) -> None:
    with client(port, HALF[sent]) as connection:
        rest(connection)


@pytest.mark.parametrize("sent", [*HALF, *GARBAGE])
@pytest.mark.parametrize("reset", [False, True])
def test_a_client_that_goes_after_garbage_or_half_a_request_is_no_mistake_of_ours(
    port: int, sent: str, reset: bool
) -> None:
    with client(port, {**HALF, **GARBAGE}[sent]) as connection:
        if reset:  # a port scanner does not wait
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.mark.parametrize("sent", GARBAGE)
def test_garbage_is_answered(port: int, sent: str) -> None:
    with client(port, GARBAGE[sent]) as connection:
        rest(connection)


def test_a_client_that_sends_a_byte_now_and_then_has_no_more_time_than_others(port: int) -> None:
    with client(port, b"GET / HTTP/1.1\r\n") as connection, pytest.raises(OSError):
        for _ in range(round(PATIENCE_S / 0.1)):
            connection.sendall(b"x")
            let_pass(0.1)


def test_a_client_that_does_not_take_its_answer_ends_in_time(port: int) -> None:
    with client(port, b"GET / HTTP/1.0\r\n\r\n") as connection:
        let_pass(1.0)
        assert len(rest(connection)) < 1 << 23


def test_many_clients_that_send_nothing_do_not_take_all_threads(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "MOST_THREADS", 10 + threading.active_count())
    silent = [client(port, b"") for _ in range(50)]
    for each in silent:
        assert rest(each) == b""
        each.close()
    with client(port, b"GET / HTTP/1.0\r\n\r\n") as connection:
        assert rest(connection).startswith(b"HTTP/1.0 200 OK")
