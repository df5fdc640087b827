"""Bytes that tasks send and receive: the kernel's counts of real connections, and the rates made of them."""

import os
import socket
from typing import Dict, Iterable, Iterator, List, Optional, Tuple

import pytest

from launch.agent.linux.traffic import WINDOW_S, Bytes, Traffic, read_connections
from tests.support.waiting import eventually

Pair = Tuple[socket.socket, socket.socket]


@pytest.fixture(params=["127.0.0.1", "::1"])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Both ends of a connection on loopback."""
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    with socket.socket(family) as listener:
        listener.bind((request.param, 0))
        listener.listen(1)
        with socket.create_connection(listener.getsockname()[:2]) as one:
            other, _ = listener.accept()
            with other:
                yield one, other


def send(one: socket.socket, other: socket.socket, count: int) -> None:
    """So many bytes from one end to the other, where they are read."""
    while count:
        sent = one.send(bytes(min(count, 1000)))
        assert len(other.recv(sent, socket.MSG_WAITALL)) == sent
        count -= sent


def counted(end: socket.socket) -> Bytes:
    """The kernel's count of one end. It counts the request to connect as a byte that was sent."""
    return (read_connections() or {})[os.fstat(end.fileno()).st_ino]


def test_the_kernel_counts_the_bytes_of_both_ends_of_a_connection(pair: Pair) -> None:
    one, other = pair
    send(one, other, 50_000)
    send(other, one, 700)
    eventually("all acknowledged", lambda: counted(one).out >= 50_000 and counted(other).out >= 700)
    assert (counted(one).into, counted(other).into) == (700, 50_000)
    assert (counted(one).out - 50_000, counted(other).out - 700) in {(0, 0), (1, 0), (1, 1)}


def test_a_process_that_sends_and_receives_has_a_rate(pair: Pair) -> None:
    traffic = Traffic()
    own = {"worker:0": [os.getpid()]}
    assert traffic.look(0.0, own) == {}
    send(*pair, 40_000)
    eventually("all acknowledged", lambda: counted(pair[0]).out >= 40_000)
    rate = traffic.look(2.0, own)["worker:0"]
    assert rate.into >= 20_000 and rate.out >= 20_000  # other connections of this process count too


def test_the_bytes_of_a_task_are_counted_from_its_first_look_in_both_directions(pair: Pair) -> None:
    traffic, own = Traffic(), {"worker:0": [os.getpid()]}
    assert traffic.total("worker:0") == 0.0
    traffic.look(0.0, own)
    send(*pair, 40_000)
    eventually("all acknowledged", lambda: counted(pair[0]).out >= 40_000)
    traffic.look(100.0, own)
    assert 80_000 <= traffic.total("worker:0") < 90_000  # other connections of this process count too


class Kernel:
    """Connections that a test makes up: {inode: bytes so far}, and which process holds which."""

    def __init__(self) -> None:
        self.connections: Optional[Dict[int, Bytes]] = {}
        self.held: Dict[int, List[int]] = {1: [], 2: []}
        self.traffic = Traffic(lambda: dict(self.connections) if self.connections is not None else None, self.sockets)

    def sockets(self, pids: Iterable[int]) -> List[int]:
        return [inode for pid in pids for inode in self.held[pid]]

    def look(self, now: float) -> Dict[str, Bytes]:
        return self.traffic.look(now, {"worker:0": [1], "worker:1": [2]})

    def count(self, **counts: Tuple[int, int]) -> None:
        """``c7=(in, out)``: connection 7 has had so many bytes."""
        self.connections = {int(name[1:]): Bytes(*count) for name, count in counts.items()}


@pytest.fixture
def kernel() -> Kernel:
    made = Kernel()
    made.held = {1: [7], 2: [8, 9]}
    made.count(c7=(1000, 50), c8=(0, 0), c9=(0, 0), c10=(5, 5))
    assert made.look(0.0) == {}
    return made


def test_each_task_has_the_bytes_of_its_own_connections(kernel: Kernel) -> None:
    kernel.count(c7=(1200, 50), c8=(10, 20), c9=(10, 40), c10=(9999, 9999))
    assert kernel.look(2.0) == {"worker:0": Bytes(100, 0), "worker:1": Bytes(10, 30)}


def test_a_connection_that_was_opened_meanwhile_counts_from_its_beginning(kernel: Kernel) -> None:
    kernel.held[1].append(11)
    kernel.count(c7=(1000, 50), c11=(600, 6))
    assert kernel.look(2.0)["worker:0"] == Bytes(300, 3)


def test_a_connection_that_was_closed_takes_nothing_back(kernel: Kernel) -> None:
    kernel.count(c7=(1100, 50))
    assert kernel.look(1.0)["worker:0"] == Bytes(100, 0)
    kernel.count()
    assert kernel.look(2.0)["worker:0"] == Bytes(50, 0)


def test_an_inode_that_the_kernel_gave_away_again_counts_from_nothing(kernel: Kernel) -> None:
    kernel.count(c7=(10, 20))
    assert kernel.look(1.0)["worker:0"] == Bytes(10, 20)


def test_only_the_last_seconds_count(kernel: Kernel) -> None:
    for second in range(1, 31):
        kernel.count(c7=(1000 + 10 * second if second <= 15 else 1150 + 30 * (second - 15), 50))
        rate = kernel.look(float(second))["worker:0"]
    assert WINDOW_S < 15 and rate == Bytes(30, 0)


def test_a_task_that_starts_again_begins_anew(kernel: Kernel) -> None:
    assert kernel.traffic.look(1.0, {}) == {}
    assert kernel.look(2.0) == {}


def test_where_the_kernel_does_not_tell_nothing_is_claimed(kernel: Kernel) -> None:
    kernel.connections = None
    assert kernel.look(2.0) == {}
