"""Doors: ports that are opened for a moment, so that ``launch check`` can test connections between hosts.

A caller sends the check's first secret word, and receives the second one, this host's name and the port. Only our own
listener can give this answer. So a caller detects any other listener at the address, such as a proxy or another
machine of that name.

A failure to reach another host's door has one of these kinds:

    unresolved   the name has no address here
    loopback     the name means this very host, but the task is on another host
    refused      the address refuses the connection, although our listener is up
    no-route     this host has no route to the address
    timed-out    no answer: a device or a firewall rule drops the packets
    failed       the connection failed in another way, such as a reset
    other        a program other than our listener answered
    wrong-host   our listener answered, but on another host: the address is wrong
"""

import asyncio
import contextlib
import errno
import json
import os
import socket
import socketserver
import threading
import time
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from cluster.protocol.addresses import host_of, port_of
from launch.agent.errors import AgentError
from launch.agent.linux import sockets
from launch.agent.linux.processes import environment
from launch.agent.network.resolver import Meaning, is_loopback


class DialTarget(NamedTuple):
    """The address at which other hosts will connect to a task, and the task's host."""

    address: str
    host: str

    @property
    def name(self) -> str:
        """Return the host name in the address."""
        return host_of(self.address)

    @property
    def port(self) -> int:
        """Return the port of the address."""
        return port_of(self.address)


CALL_S = 5.0  # for a caller to send its word
CALLERS = 512  # simultaneous callers of one door: each takes a thread, and strangers can call, too
LONGEST_LINE = 4096
POLL_S = 0.05  # the time until a door notices that it is closed
LEAVING_S = 1.0  # for answered callers to hang up


class _Caller(socketserver.StreamRequestHandler):
    timeout = CALL_S
    server: "_Door"

    def handle(self) -> None:
        try:
            if self.rfile.readline(LONGEST_LINE).strip() == self.server.call:
                self.wfile.write(self.server.answer)
                self.rfile.read(1)  # the caller hangs up first: else this port would be in TIME_WAIT for a minute
        except OSError:  # the caller sent no word, or has hung up
            return


class _Door(socketserver.ThreadingTCPServer):
    """One open port, on every interface and in both address families, like TensorFlow's server."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 1024

    def __init__(self, port: int, call: bytes, answer: bytes):
        self.call, self.answer = call, answer
        self._places = threading.BoundedSemaphore(CALLERS)
        self.address_family = _family()
        super().__init__(("", port), _Caller)

    def server_bind(self) -> None:
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a caller in a thread; close the connection where all places are taken."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a caller, and free its place when the caller has left."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def server_close(self) -> None:
        """Close the door, and wait a moment for the last callers, whose connections also hold the port."""
        super().server_close()
        end = time.monotonic() + LEAVING_S
        for _ in range(CALLERS):
            if not self._places.acquire(timeout=max(0.0, end - time.monotonic())):
                return

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore the error of a caller that disconnects."""


class Doors:
    """A context manager: ports of this host that answer callers until its end, or the end of the process.

    Args:
      words: the word that a caller sends, and the word that it receives.
      host: this host's name in the hosts file.
    """

    def __init__(self, words: Sequence[str], host: str):
        self._call, self._reply, self._host = words[0].encode(), words[1], host
        self._open: List[_Door] = []

    def open(self, wanted: Sequence[int]) -> Dict[str, Optional[Dict[str, Any]]]:
        """Open ports; return {port: None if it is open now, else why it could not be opened}.

        The reason for a taken port is the result of ``held``; any other reason is {"why": text}.
        """
        return {str(port): self._try(port) for port in wanted}

    def _try(self, port: int) -> Optional[Dict[str, Any]]:
        answer = json.dumps({"word": self._reply, "host": self._host, "port": port}).encode() + b"\n"
        try:
            door = _Door(port, self._call, answer)
        except OSError as error:
            return held(port) if error.errno == errno.EADDRINUSE else {"why": os.strerror(error.errno or 0)}
        threading.Thread(target=door.serve_forever, args=(POLL_S,), daemon=True).start()
        self._open.append(door)
        return None

    def __enter__(self) -> "Doors":
        return self

    def __exit__(self, *_: object) -> None:
        for door in self._open:
            door.shutdown()
            door.server_close()


def held(port: int) -> Dict[str, Any]:
    """Return the process that holds a port: {"why": text, "pid", "run"}.

    ``run`` is None unless the process is a task or an agent of a run.
    """
    pid = sockets.holder(port)
    return {
        "why": f"taken by {sockets.describe_holder(port)}", "pid": pid,
        "run": environment(pid).get("LAUNCH_RUN") if pid else None,
    }  # fmt: skip


def _family() -> socket.AddressFamily:
    """Return IPv6, whose sockets also accept IPv4; IPv4 where this host has no IPv6."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::", 0))
    except OSError:
        return socket.AF_INET
    return socket.AF_INET6


AT_ONCE = 200


class DialFailure(AgentError):
    """The error that a target cannot be reached. ``kind`` is one of the kinds in this module's docstring."""

    def __init__(self, kind: str, detail: str = ""):
        super().__init__(kind, detail)
        self.kind, self.detail = kind, detail


class Knock(NamedTuple):
    """The secret words and the time limit for connections to other hosts' doors.

    Attributes:
      words: the word to send, and the word that our listener must answer.
      here: the names that this host has in the hosts file.
      timeout_s: the seconds allowed for one target, from the first packet to the answer.
    """

    words: Sequence[str]
    here: Sequence[str]
    timeout_s: float


def dial_all(targets: Sequence[DialTarget], names: Mapping[str, Meaning], knock: Knock) -> List[Dict[str, str]]:
    """Connect to each target; return those that cannot be reached: [{"address", "host", "kind", "detail"}].

    ``names`` has, for each target's name, its addresses on this host, or the reason why it has no address.
    """
    return asyncio.run(_dial_all(targets, names, knock))


async def _dial_all(targets: Sequence[DialTarget], names: Mapping[str, Meaning], knock: Knock) -> List[Dict[str, str]]:
    turn = asyncio.Semaphore(AT_ONCE)

    async def tried(target: DialTarget) -> Optional[DialFailure]:
        async with turn:
            try:
                await _dial(target, names[target.name], knock)
            except DialFailure as failure:
                return failure
        return None

    failures = await asyncio.gather(*map(tried, targets))
    return [
        {**target._asdict(), "kind": failure.kind, "detail": failure.detail}
        for target, failure in zip(targets, failures)
        if failure is not None
    ]


async def _dial(target: DialTarget, meaning: Meaning, knock: Knock) -> None:
    if isinstance(meaning, str):
        raise DialFailure("unresolved", meaning)
    if target.host not in knock.here and is_loopback(meaning[0]):
        raise DialFailure("loopback", meaning[0])
    failures = []
    for address in meaning:  # like gRPC, use the first address that accepts
        try:
            said = await _said(address, target.port, knock)
        except DialFailure as failure:
            failures.append(failure)
        else:
            return _recognise(said, target, knock.words[1])
    raise failures[0]


async def _said(address: str, port: int, knock: Knock) -> bytes:
    try:
        return await asyncio.wait_for(_call(address, port, knock.words[0]), knock.timeout_s)
    except asyncio.TimeoutError:
        raise DialFailure("timed-out", f"{address}, {knock.timeout_s:.0f} s") from None
    except ConnectionRefusedError:
        raise DialFailure("refused", address) from None
    except OSError as error:
        kind = "no-route" if error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH) else "failed"
        raise DialFailure(kind, f"{address}: {os.strerror(error.errno) if error.errno else error}") from None


async def _call(address: str, port: int, word: str) -> bytes:
    reader, writer = await asyncio.open_connection(address, port)
    try:
        writer.write(word.encode() + b"\n")
        return await reader.read(LONGEST_LINE)
    finally:
        with contextlib.suppress(OSError):
            writer.close()


def _recognise(said: bytes, target: DialTarget, word: str) -> None:
    try:
        answer: Any = json.loads(said.decode())
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or answer.get("word") != word:
        shown = said.splitlines()[0][:60].decode(errors="replace") if said else "nothing, and hung up"
        raise DialFailure("other", shown)
    if (answer["host"], answer["port"]) != (target.host, target.port):
        raise DialFailure("wrong-host", f"{answer['host']} port {answer['port']}")
