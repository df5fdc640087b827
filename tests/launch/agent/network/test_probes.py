"""Knocking on doors: only our own listener is let count, and every way to fail has its name."""

import errno
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List

import pytest

from launch.agent.linux.sockets import free_ports
from launch.agent.network import doors, resolver
from launch.agent.network.doors import DialTarget, Doors, Knock, dial_all
from tests.support.waiting import eventually

WORDS = ("who is there", "it is me")


def dialled(address: str, host: str = "h1", meaning: Any = ("127.0.0.1",), timeout_s: float = 5.0) -> List[Any]:
    """(kind, detail) of one target, if it fails; the name means what is given."""
    target = DialTarget(address, host)
    failures = dial_all([target], {target.name: meaning}, Knock(WORDS, ["h1"], timeout_s))
    return [(failure["kind"], failure["detail"]) for failure in failures]


@contextmanager
def answering(said: bytes) -> Iterator[int]:
    """A server of somebody else that says the same to everybody and hangs up; its port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(5)

        def serve() -> None:
            caller, _ = listener.accept()
            with caller:
                caller.recv(100)
                caller.sendall(said)

        server = threading.Thread(target=serve, daemon=True)
        server.start()
        yield listener.getsockname()[1]
        server.join(20)


def test_a_door_opens_to_the_callers_word_in_both_address_families() -> None:
    (port,) = free_ports(1)
    with Doors(WORDS, "h1") as listeners:
        assert listeners.open([port]) == {str(port): None}
        assert dialled(f"a:{port}") == []
        assert dialled(f"a:{port}", meaning=["::1"]) == []
        assert dialled(f"a:{port}", meaning=["127.0.0.9", "127.0.0.1"]) == []


def test_a_door_meets_so_many_callers_at_a_time_and_hangs_up_on_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "CALLERS", 2)
    (port,) = free_ports(1)
    with Doors(WORDS, "h1") as opened:
        opened.open([port])
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
        silent[2].settimeout(20.0)
        assert silent[2].recv(1) == b""
        for each in silent:
            each.close()
        eventually("a place", lambda: dialled(f"a:{port}") == [])


def test_a_door_leaves_its_port_free_at_once() -> None:
    (port,) = free_ports(1)
    with Doors(WORDS, "h1") as listeners:
        listeners.open([port])
        assert dialled(f"a:{port}") == []
    with socket.socket() as strict:  # without SO_REUSEADDR, as some servers are
        strict.bind(("", port))


def test_a_door_waits_for_a_caller_that_has_its_answer() -> None:
    (port,) = free_ports(1)
    with Doors(WORDS, "h1") as doors:
        doors.open([port])
        caller = socket.create_connection(("127.0.0.1", port))
        caller.sendall(WORDS[0].encode() + b"\n")
        assert caller.recv(1)
        threading.Timer(0.2, caller.close).start()
    with socket.socket() as strict:
        strict.bind(("", port))


def test_a_door_does_not_wait_for_a_caller_that_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "LEAVING_S", 0.1)
    (port,) = free_ports(1)
    with socket.socket() as stranger:
        with Doors(WORDS, "h1") as listeners:
            listeners.open([port])
            stranger.connect(("127.0.0.1", port))
            left = time.monotonic()
        assert time.monotonic() - left < doors.CALL_S


def test_a_stranger_is_told_nothing() -> None:
    (port,) = free_ports(1)
    with Doors(WORDS, "h1") as listeners, socket.socket() as stranger:
        listeners.open([port])
        stranger.connect(("127.0.0.1", port))
        stranger.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert stranger.recv(100) == b""


def test_a_port_that_is_taken_is_told_with_its_holder_and_run() -> None:
    script = "import socket, time; s = socket.socket(); s.bind(('', 0)); s.listen(1)"
    tell = "print(s.getsockname()[1], flush=True); time.sleep(60)"
    argv = [sys.executable, "-c", f"{script}; {tell}"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env={"LAUNCH_RUN": "r-0"}) as taker:
        port = int(taker.stdout.readline())  # type: ignore[union-attr]
        with Doors(WORDS, "h1") as listeners:
            held: Dict[str, Any] = listeners.open([port])[str(port)] or {}
        taker.kill()
    assert (held["pid"], held["run"]) == (taker.pid, "r-0")
    assert held["why"].startswith(f"taken by pid {taker.pid} ({sys.executable} -c")


def test_a_name_without_an_address_is_unresolved() -> None:
    assert dialled("a:1", meaning="Name or service not known") == [("unresolved", "Name or service not known")]


def test_a_name_that_means_this_host_is_loopback_for_a_task_on_another() -> None:
    assert dialled("a:1", host="h2", meaning=["127.0.1.1"]) == [("loopback", "127.0.1.1")]
    assert resolver.is_loopback("::1") and not resolver.is_loopback("fe80::1%eth0")


def test_an_address_where_nothing_listens_refuses() -> None:
    (port,) = free_ports(1)
    assert dialled(f"a:{port}") == [("refused", "127.0.0.1")]


def test_a_connection_that_fails_in_another_way_was_answered_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    async def call(*_: Any) -> bytes:
        raise OSError(errno.EMFILE, "")

    monkeypatch.setattr(doors, "_call", call)
    assert dialled("a:1") == [("failed", "127.0.0.1: Too many open files")]


def test_an_address_that_never_answers_is_timed_out() -> None:
    with socket.socket() as silent:  # connects by its backlog, and says nothing
        silent.bind(("127.0.0.1", 0))
        silent.listen(5)
        assert dialled(f"a:{silent.getsockname()[1]}", timeout_s=0.3) == [("timed-out", "127.0.0.1, 0 s")]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (b"HTTP/1.1 400 Bad Request\r\nServer: x\r\n", "HTTP/1.1 400 Bad Request"),
        (b"", "nothing, and hung up"),
        (b"\n", ""),
        (b'{"word": "another check\'s"}', '{"word": "another check\'s"}'),
    ],
)
def test_whatever_answers_that_is_not_ours_is_shown(said: bytes, shown: str) -> None:
    with answering(said) as port:
        assert dialled(f"a:{port}") == [("other", shown)]


def test_our_listener_of_another_host_is_the_wrong_one() -> None:
    (port,) = free_ports(1)
    with Doors(WORDS, "h9") as listeners:
        listeners.open([port])
        assert dialled(f"a:{port}") == [("wrong-host", f"h9 port {port}")]


def test_names_are_resolved_side_by_side_and_a_resolver_that_hangs_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release = threading.Event()

    def hanging(name: str) -> List[str]:
        if name == "slow":
            release.wait(60)
        return [name]

    monkeypatch.setattr(resolver, "_addresses", hanging)
    try:
        found = resolver.resolve(["a", "slow", "b", "a"], 0.5)
    finally:
        release.set()
    assert found == {"a": ["a"], "slow": "no answer from the resolver within 0 s", "b": ["b"]}


def test_this_machine_knows_itself_and_not_a_name_that_nobody_may_have() -> None:
    found = resolver.resolve(["localhost", "nobody.invalid"], 30.0)
    assert "127.0.0.1" in found["localhost"] or "::1" in found["localhost"]
    assert isinstance(found["nobody.invalid"], str)
