"""Who listens where, found without a tool that a host may lack."""

import contextlib
import os
import socket
import subprocess
import sys
from collections import deque
from pathlib import Path
from typing import Iterator, List, Sequence, Tuple

import pytest

from launch.agent.linux import sockets
from tests.support import ROOT

LISTEN = """
    import socket, sys, time
    s = socket.socket(socket.{family}); s.bind(("{address}", 0)); s.listen(1); print(s.getsockname()[1], flush=True)
    time.sleep(60)
""".replace("    ", "")


@pytest.fixture(params=[("AF_INET", "127.0.0.1"), ("AF_INET6", "::1")])
def server(request: pytest.FixtureRequest) -> Iterator["subprocess.Popen[bytes]"]:
    """Another process that listens; its first line of output is the port."""
    script = LISTEN.format(family=request.param[0], address=request.param[1])
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        yield process
        process.kill()


def port_of(server: "subprocess.Popen[bytes]") -> int:
    line: bytes = server.stdout.readline()  # type: ignore[union-attr]
    return int(line)


def test_the_process_that_listens_on_a_port_is_found_and_described(server: "subprocess.Popen[bytes]") -> None:
    port = port_of(server)
    assert sockets.holder(port) == server.pid
    assert sockets.describe_holder(port).startswith(f"pid {server.pid} ({sys.executable} -c")


def test_a_port_that_one_interface_listens_on_is_taken() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        port = listener.getsockname()[1]
        assert not sockets.can_listen(port)
        assert sockets.holder(port) == os.getpid()
    assert sockets.can_listen(port)


ASKS = """
import random
from launch.agent.linux.sockets import free_ports
random.seed(0)  # both processes would choose the same
print(*free_ports(250), flush=True)
input()
"""


def test_no_two_processes_choose_the_same_ports() -> None:
    chosen: List[str] = []
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            asking = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", ASKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=str(ROOT)
                )
            )
            stack.callback(asking.kill)
            chosen += asking.stdout.readline().decode().split()  # type: ignore[union-attr]
    assert len(chosen) == len(set(chosen)) == 500


@pytest.fixture
def nothing_booked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    bookings: List[socket.socket] = []
    monkeypatch.setattr(sockets, "_own", deque())
    monkeypatch.setattr(sockets, "_bookings", bookings)
    yield
    for booking in bookings:
        booking.close()


@pytest.mark.usefixtures("nothing_booked")
def test_a_process_chooses_a_port_again_only_after_all_others() -> None:
    first = sockets.free_ports(sockets._BLOCK - 10)
    again = sockets.free_ports(sockets._BLOCK - 10)
    assert len(set(first + again[:10])) == sockets._BLOCK
    assert again[10:] == first[: sockets._BLOCK - 20]


@pytest.mark.parametrize(
    "outgoing, expected",
    [
        ((32768, 60999), [*range(10000, 32768), *range(61000, 65536)]),
        ((1024, 60999), range(61000, 65536)),
        ((15000, 65535), range(10000, 15000)),
        ((1024, 65535), range(10000, 65536)),  # as sites set it that open many connections
    ],
)
@pytest.mark.usefixtures("nothing_booked")
def test_ports_are_none_that_the_kernel_may_take_for_a_connection_if_there_are_others(
    outgoing: Tuple[int, int], expected: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "outgoing_ports", lambda: outgoing)
    assert set(sockets.free_ports(2000)) <= set(expected)


@pytest.mark.usefixtures("nothing_booked")
def test_where_others_have_booked_all_ports_one_is_chosen_nevertheless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "_book", lambda block: False)
    assert len(set(sockets.free_ports(sockets._BLOCK + 1))) == sockets._BLOCK + 1


@pytest.mark.usefixtures("nothing_booked")
def test_connections_of_a_server_that_is_gone_do_not_keep_its_port_but_no_launcher_chooses_it() -> None:
    with socket.socket() as listener, socket.socket() as caller:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        port = listener.getsockname()[1]
        caller.connect(("127.0.0.1", port))
        listener.accept()[0].close()  # this end closes first: it stays in TIME_WAIT
    assert sockets.can_listen(port)
    sockets._own.append(port)
    assert port not in sockets.free_ports(1)  # a program without SO_REUSEADDR could not listen there


def test_free_ports_are_free_and_all_different() -> None:
    found = sockets.free_ports(50)
    assert len(set(found)) == 50
    assert all(sockets.can_listen(port) for port in found)


def test_a_port_that_nobody_listens_on_has_no_holder() -> None:
    port = sockets.free_ports(1)[0]
    assert sockets.holder(port) is None
    assert sockets.describe_holder(port) == "connections of an earlier process"


def test_a_holder_that_may_not_be_seen_is_another_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "holder", lambda port: None)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        assert sockets.describe_holder(listener.getsockname()[1]) == "a process of another user"


def test_the_ports_that_processes_listen_on_are_found_and_no_others(server: "subprocess.Popen[bytes]") -> None:
    port = port_of(server)
    with socket.socket() as ours:
        ours.bind(("127.0.0.1", 0))
        ours.listen(1)
        assert sockets.listened_by([server.pid]) == [port]
        assert set(sockets.listened_by([server.pid, os.getpid()])) >= {port, ours.getsockname()[1]}
    assert sockets.listened_by([]) == []


@pytest.mark.parametrize(
    ("reserved", "found"),
    [("", [1000, 1500, 2000]), ("1500", [1000, 2000]), ("3,1000-1500", [2000]), ("1-65535", [])],
)
def test_a_port_in_the_range_of_outgoing_connections_is_ephemeral_unless_it_is_reserved(
    reserved: str, found: List[int], tmp_path: Path
) -> None:
    (tmp_path / "ip_local_port_range").write_text("1000\t2000\n")
    (tmp_path / "ip_local_reserved_ports").write_text(f"{reserved}\n")
    outgoing, kept = sockets.outgoing_ports(tmp_path), sockets.reserved_ports(tmp_path)
    assert sockets.ephemeral([999, 1000, 1500, 2000, 2001], outgoing, kept) == found


def test_a_kernel_that_tells_nothing_of_ports_has_its_usual_range(tmp_path: Path) -> None:
    assert (sockets.outgoing_ports(tmp_path), sockets.reserved_ports(tmp_path)) == ((32768, 60999), "")
