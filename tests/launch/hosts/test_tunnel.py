"""What connects to a port of this machine is joined to somewhere else, both ways, until both have ended."""

import socket
import threading
from contextlib import ExitStack, contextmanager
from typing import Iterator

import pytest

from launch.errors import CannotStart, HostProblem, ProblemKind
from launch.hosts.local_host import LocalHost
from launch.verbs.board import Tunnel
from tests.support.waiting import PATIENCE_S


@contextmanager
def shouting() -> Iterator[int]:
    """A server that answers with capitals, and with a dot when nothing more comes; its port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(5)
        serving = threading.Thread(target=_serve, args=(listener,))
        serving.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)  # wakes the server
        serving.join(PATIENCE_S)


def _serve(listener: socket.socket) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:  # the test is over
            return
        threading.Thread(target=_shout, args=(connection,), daemon=True).start()


def _shout(connection: socket.socket) -> None:
    with connection:
        for data in iter(lambda: connection.recv(1000), b""):
            connection.sendall(data.upper())
        connection.sendall(b".")


def call(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), PATIENCE_S)


def test_what_is_said_arrives_and_is_answered_on_many_connections_at_once() -> None:
    host = LocalHost("localhost", "py")
    with ExitStack() as stack:
        port = stack.enter_context(shouting())
        tunnel = stack.enter_context(Tunnel(lambda: host.dial(port), 0))
        first, second = (stack.enter_context(call(tunnel.port)) for _ in range(2))
        second.sendall(b"b")
        assert second.recv(10) == b"B"
        first.sendall(b"a")
        assert first.recv(10) == b"A"


def test_the_end_of_one_side_is_told_to_the_other_and_the_rest_still_comes() -> None:
    host = LocalHost("localhost", "py")
    with shouting() as port, Tunnel(lambda: host.dial(port), 0) as tunnel, call(tunnel.port) as caller:
        caller.sendall(b"a")
        caller.shutdown(socket.SHUT_WR)
        assert b"".join(iter(lambda: caller.recv(10), b"")) == b"A."


def test_a_connection_to_a_host_that_is_gone_ends() -> None:
    def gone() -> socket.socket:
        raise HostProblem("h1", ProblemKind.UNREACHABLE, "out of reach")

    with Tunnel(gone, 0) as tunnel, call(tunnel.port) as caller:
        assert caller.recv(10) == b""


def test_after_the_end_nothing_listens_any_more() -> None:
    with Tunnel(lambda: None, 0) as tunnel:
        port = tunnel.port
    with pytest.raises(ConnectionRefusedError):
        call(port)


def test_a_port_that_is_taken_is_told_of() -> None:
    with shouting() as port, pytest.raises(CannotStart) as caught:
        Tunnel(lambda: None, port)
    assert (
        str(caught.value) == f"this machine: cannot listen on port {port}: Address already in use; give another --port"
    )


def test_a_port_of_this_machine_where_nothing_listens_is_told_of() -> None:
    with shouting() as port:
        pass
    with pytest.raises(HostProblem, match=f"localhost: no answer at port {port}: "):
        LocalHost("localhost", "py").dial(port)
