"""The bytes that tasks send and receive over TCP, as the kernel counts them.

Over a netlink socket, without privilege, the kernel reports two counts of every connection: the received bytes, and the
sent and acknowledged bytes (``ss -ti`` shows the same). A connection counts for the task whose processes hold it. A
connection that opens and closes between two calls of ``look`` is missed; TensorFlow's connections last as long as its
processes.
"""

import socket
import struct
from collections import deque
from typing import Callable, Deque, Dict, Iterable, Iterator, Mapping, NamedTuple, Optional, Tuple

from launch.agent.linux.sockets import held_sockets

WINDOW_S = 10.0
_ANSWER_S = 2.0
_SOCK_DIAG, _BY_FAMILY, _DUMP = 4, 20, 0x301  # linux/netlink.h, sock_diag.h
_ERROR, _DONE = 2, 3
_ASK_INFO, _INFO = 1 << 1, 2  # INET_DIAG_INFO: as a bit of a request, and as an attribute of an answer
_CONNECTED = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8  # established, or closed on one side
_HEADER, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=HH")
_INODE_AT, _ATTRIBUTES_AT = 68, 72  # in inet_diag_msg
_COUNTERS, _COUNTERS_AT = struct.Struct("=QQ"), 120  # bytes_acked, bytes_received in tcp_info, since Linux 4.1


class Bytes(NamedTuple):
    """The received and the sent bytes, as totals or per second."""

    into: float
    out: float


Connections = Mapping[int, Bytes]  # by inode


class Traffic:
    """The traffic of this host's tasks, in bytes per second.

    Args:
      connections: returns the bytes of every connection of this host; None where the kernel does not report them.
      sockets: returns the inodes of the sockets that given processes hold.
    """

    def __init__(
        self,
        connections: Optional[Callable[[], Optional[Connections]]] = None,
        sockets: Callable[[Iterable[int]], Iterable[int]] = held_sockets,
    ):
        self._read, self._sockets = connections or read_connections, sockets
        self._seen: Connections = {}
        self._told: Dict[str, Deque[Tuple[float, Bytes]]] = {}  # {task: its bytes up to each time}

    def look(self, now: float, pids: Mapping[str, Iterable[int]]) -> Dict[str, Bytes]:
        """Return the bytes per second of each task over the last ``WINDOW_S`` seconds: {task: bytes}.

        The result has a task from the second call on. It is empty where the kernel does not report connections.

        Args:
          pids: the pids of each task's processes.
        """
        connections = self._read()
        if connections is None:
            return {}
        told = {task: self._up_to_now(task, now, connections, own) for task, own in pids.items()}
        self._seen, self._told = connections, told
        return {task: _rate(history) for task, history in told.items() if len(history) > 1}

    def total(self, task: str) -> float:
        """Return the sum of the bytes that a task has received and sent since its first ``look``; 0 if unknown."""
        return sum(self._told[task][-1][1]) if task in self._told else 0.0

    def _up_to_now(
        self, task: str, now: float, connections: Connections, pids: Iterable[int]
    ) -> Deque[Tuple[float, Bytes]]:
        history = self._told.get(task, deque())
        own = [inode for inode in self._sockets(pids) if inode in connections]
        into, out = history[-1][1] if history else Bytes(0, 0)
        for inode in own if history else ():
            here, before = connections[inode], self._seen.get(inode, Bytes(0, 0))
            if here.into < before.into or here.out < before.out:  # the inode has another connection by now
                before = Bytes(0, 0)
            into, out = into + here.into - before.into, out + here.out - before.out
        history.append((now, Bytes(into, out)))
        while now - history[0][0] > WINDOW_S and len(history) > 2:
            history.popleft()
        return history


def _rate(history: Deque[Tuple[float, Bytes]]) -> Bytes:
    (since, first), (until, last) = history[0], history[-1]
    seconds = max(until - since, 1e-9)
    return Bytes((last.into - first.into) / seconds, (last.out - first.out) / seconds)


def read_connections() -> Optional[Dict[int, Bytes]]:
    """Return the bytes so far of every TCP connection of this host: {inode: bytes}.

    The result is None where the kernel does not report the bytes.
    """
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG) as kernel:
            kernel.settimeout(_ANSWER_S)
            return {
                inode: count for family in (socket.AF_INET, socket.AF_INET6) for inode, count in _ask(kernel, family)
            }
    except OSError:
        return None


def _ask(kernel: socket.socket, family: int) -> Iterator[Tuple[int, Bytes]]:
    request = struct.pack("=BBBxI48x", family, socket.IPPROTO_TCP, _ASK_INFO, _CONNECTED)
    kernel.send(_HEADER.pack(_HEADER.size + len(request), _BY_FAMILY, _DUMP, 0, 0) + request)
    while True:
        data, at = kernel.recv(1 << 18), 0
        while at < len(data):
            length, kind, *_ = _HEADER.unpack_from(data, at)
            if kind == _DONE:
                return
            if kind == _ERROR:
                raise OSError("the kernel reports no TCP connections")
            yield from _counts(data[at + _HEADER.size : at + length])
            at += length + -length % 4


def _counts(message: bytes) -> Iterator[Tuple[int, Bytes]]:
    """Yield the inode and the bytes of one connection; nothing on a kernel without these counts."""
    at = _ATTRIBUTES_AT
    while at + _ATTRIBUTE.size <= len(message):
        length, kind = _ATTRIBUTE.unpack_from(message, at)
        info = message[at + _ATTRIBUTE.size : at + length]
        if kind == _INFO and len(info) >= _COUNTERS_AT + _COUNTERS.size:
            out, into = _COUNTERS.unpack_from(info, _COUNTERS_AT)
            yield struct.unpack_from("=I", message, _INODE_AT)[0], Bytes(into, out)
        at += max(length + -length % 4, _ATTRIBUTE.size)
