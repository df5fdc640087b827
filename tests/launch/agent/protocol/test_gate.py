"""The lead's port while strangers are at it: members with the token get in, and what strangers use up is bounded."""

import asyncio
import contextlib
import json
import os
import random
import resource
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack
from typing import Any, Awaitable, Callable, Iterator, List

import pytest

from launch.agent.linux.processes import status
from launch.agent.linux.sockets import free_ports
from launch.agent.protocol import gate, links
from launch.agent.protocol.links import Greeting, Link
from launch.agent.protocol.messages import Advanced, Joined, Message
from launch.agent.protocol.silence import Silences
from launch.agent.service.member_links import Members
from launch.agent.state import log as agent_log
from tests.support.waiting import PATIENCE_S

TOKEN = "a0" * 16
ME = Greeting("gpu02", "member-1")
MIB = 1 << 20


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


class Strangers:
    """Connections to a port by who does not know the token."""

    def __init__(self, port: int, stack: ExitStack):
        self._port, self._stack = port, stack

    def __call__(self, address: str = "127.0.0.1") -> socket.socket:
        stranger = socket.create_connection(("127.0.0.1", self._port), PATIENCE_S, (address, 0))
        stranger.setblocking(False)
        return self._stack.enter_context(stranger)


@pytest.fixture
def log(capfd: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """What the agent has logged so far."""
    monkeypatch.setattr(agent_log, "_seldom", {})
    return lambda: "".join(capfd.readouterr())


async def nothing(_: Link) -> None:
    """This test has no copies."""


def besieged(act: Callable[[Members, Strangers, int, List[Message]], Awaitable[Any]]) -> None:
    """Runs ``act`` beside a lead's open port; it gets what members tell."""

    async def both() -> None:
        told: List[Message] = []
        members = Members(Silences(["gpu02"], PATIENCE_S, 0.0), TOKEN, "lead-1", told.append, nothing)
        (port,) = free_ports(1)
        await members.open(port)
        with ExitStack() as stack:
            try:
                await asyncio.wait_for(act(members, Strangers(port, stack), port, told), 2 * PATIENCE_S)
            finally:
                await members.dismiss("ended")
                await asyncio.sleep(0.1)  # for what was dropped to be closed

    asyncio.run(both())


async def until(condition: Callable[[], bool]) -> None:
    """Lets the loop run until something came true."""
    while not condition():
        await asyncio.sleep(0.005)


async def member_gets_in(port: int, told: List[Message]) -> None:
    """A member with the token dials, is let in, and is heard."""
    link = await links.dial(("127.0.0.1", port), ME, TOKEN, PATIENCE_S)
    link.send(Advanced("worker:1", 0, {"step": len(told)}))
    wanted = Advanced("worker:1", 0, {"step": len(told)})
    await until(lambda: wanted in told and any(isinstance(each, Joined) for each in told))
    link.drop()


def test_members_get_in_while_thousands_of_idle_callers_are_there_who_hold_few_files_of_the_lead() -> None:
    async def act(members: Members, stranger: Strangers, port: int, told: List[Message]) -> None:
        before, most = open_files(), 0
        for number in range(1600):
            stranger(f"127.0.{number % 100}.{1 + number // 100}").close() if number % 2 else stranger()
            if number % 100 == 0:
                await member_gets_in(port, told)
                most = max(most, open_files() - before - number // 2)
        assert most < gate.MOST + 100

    resource_limit(8192)
    besieged(act)


def resource_limit(count: int) -> None:
    """Lets this process hold the strangers' own ends."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard), hard))


DEEP = b"[" * 4000
LINES = [
    DEEP + b"\n", b'{"a":' * 700 + b"\n", b"\n", b"\xff\xfe\n", b"{}\n", b"null\n", b"1e999\n", b"NaN\n",
    b'"\\ud800"\n',
    b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n",
    b'{"nonce": ' + b"9" * 3900 + b"}\n", b'{"nonce": {"a": [1]}, "proof": 1e400}\n',
]  # fmt: skip


def greetings(seed: int, count: int) -> Iterator[bytes]:
    """Lines that are nearly a member's greeting, and lines that are nothing, the same for a seed."""
    draw = random.Random(seed)
    values: List[Any] = [None, True, -1, 1e308, "", "ä" * 50, "\0", [], {}, [[[]]], "0" * 64, "x" * 1500]
    for _ in range(count):
        fields = [*Greeting._fields, "nonce", "proof"]
        chosen = {name: draw.choice(values) for name in fields if draw.random() < 0.9}
        line = json.dumps(chosen).encode()
        if draw.random() < 0.3:
            at = draw.randrange(len(line))
            line = line[:at] + bytes(draw.randrange(256) for _ in range(3)) + line[at + 1 :]
        yield line + b"\n"


def test_whatever_line_a_caller_sends_it_is_refused_and_the_log_stays_short(log: Callable[[], str]) -> None:
    async def act(members: Members, stranger: Strangers, port: int, told: List[Message]) -> None:
        loop = asyncio.get_event_loop()
        for line in [*LINES, *greetings(7, 300)]:
            end = stranger()
            await loop.sock_sendall(end, line)
            try:
                while await asyncio.wait_for(loop.sock_recv(end, 4096), PATIENCE_S):
                    pass
            except ConnectionError:
                pass
        assert told == []
        await member_gets_in(port, told)

    besieged(act)
    said = log()
    assert "refused a caller from 127.0.0.1" in said and "Traceback" not in said
    assert len(said) < 1000


def test_a_caller_that_sends_a_byte_now_and_then_has_one_deadline_for_all_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(links, "HANDSHAKE_S", 0.3)

    async def act(members: Members, stranger: Strangers, port: int, told: List[Message]) -> None:
        end, loop = stranger(), asyncio.get_event_loop()
        began = loop.time()
        await loop.sock_recv(end, 4096)  # the nonce
        gone = asyncio.ensure_future(loop.sock_recv(end, 4096))
        while not gone.done() and loop.time() - began < 10:
            try:
                await loop.sock_sendall(end, b" ")
            except OSError:
                break
            await asyncio.sleep(0.02)
        assert loop.time() - began < 5
        gone.cancel()

    besieged(act)


def test_one_address_cannot_push_out_the_callers_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "HANDSHAKE_S", PATIENCE_S)

    async def act(members: Members, stranger: Strangers, port: int, told: List[Message]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.9", 0))
        nonce = await reader.readline()
        for _ in range(gate.MOST + 300):
            stranger("127.0.0.7")
            await asyncio.sleep(0)
        await asyncio.sleep(0.2)
        assert nonce and not reader.at_eof()
        writer.close()

    resource_limit(8192)
    besieged(act)


LEAD = """
import asyncio, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]), int(sys.argv[2])))
from launch.agent.service.daemon import log_system_errors
from launch.agent.protocol.silence import Silences
from launch.agent.service.member_links import Members
async def nothing(link): pass
async def main():
    told = []
    log_system_errors(asyncio.get_event_loop())
    members = Members(Silences(["gpu02"], 60.0, 0.0), "%s", "lead-1", told.append, nothing)
    await members.open(int(sys.argv[1]))
    print("open", flush=True)
    while not told:
        await asyncio.sleep(0.05)
    print("joined", flush=True)
asyncio.run(main())
"""


@contextlib.contextmanager
def lead(port: int, files: int) -> "Iterator[subprocess.Popen[bytes]]":
    """A lead in a process of its own, which may open so many files, until a member has joined."""
    argv = [sys.executable, "-c", LEAD % TOKEN, str(port), str(files)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == b"open\n"
            yield process
        finally:
            process.kill()


def join(port: int) -> None:
    async def dial() -> None:
        link = await links.dial(("127.0.0.1", port), ME, TOKEN, PATIENCE_S)
        await link.close()

    asyncio.run(dial())


def peak(pid: int) -> int:
    """The most bytes of memory that a process has had in use."""
    return int(status(pid)["VmHWM"].split()[0]) * 1024


def test_a_lead_that_may_open_no_more_files_goes_on_and_takes_members_again_when_it_may() -> None:
    (port,) = free_ports(1)
    with lead(port, 40) as process, ExitStack() as stack:
        for _ in range(200):
            Strangers(port, stack)()
        stack.close()
        join(port)
        said = process.stdout.read() if process.stdout else b""
        assert said.endswith(b"joined\n") and b"Traceback" not in said and len(said) < 1000, said


def test_what_callers_send_before_the_proof_takes_a_few_megabytes_however_much_it_is() -> None:
    def send_much(port: int) -> None:
        with ExitStack() as stack:
            end = Strangers(port, stack)()
            end.settimeout(PATIENCE_S)
            with contextlib.suppress(OSError):  # the lead hangs up
                for _ in range(8):
                    end.sendall(b"x" * MIB)

    (port,) = free_ports(1)
    with lead(port, 1024) as process:
        before = peak(process.pid)
        senders = [threading.Thread(target=send_much, args=[port]) for _ in range(60)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        assert peak(process.pid) - before < 30 * MIB
        join(port)
        assert process.stdout is not None and process.stdout.read().endswith(b"joined\n")
