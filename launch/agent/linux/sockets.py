"""The TCP sockets of this host: free ports, listening processes, and the connections of given processes.

The functions read the kernel's table that ``ss -tan`` shows. It has the queue sizes of each connection.
"""

import contextlib
import errno
import os
import socket
import struct
from collections import deque
from pathlib import Path
from typing import Any, Deque, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from launch.agent.linux.processes import command_line
from launch.agent.linux.procfs import names_in

_STATES = {
    "01": "ESTABLISHED", "02": "SYN_SENT", "03": "SYN_RECV", "04": "FIN_WAIT1", "05": "FIN_WAIT2", "06": "TIME_WAIT",
    "07": "CLOSE", "08": "CLOSE_WAIT", "09": "LAST_ACK", "0A": "LISTEN", "0B": "CLOSING", "0C": "NEW_SYN_RECV",
}  # fmt: skip


class SocketRow(NamedTuple):
    """One socket; ``send_queue`` and ``receive_queue`` are unacknowledged and unread bytes.

    ``retransmits`` counts the consecutive timeouts of sent bytes. ``inode`` identifies the socket in ``/proc/PID/fd``.
    """

    local: Tuple[str, int]
    remote: Tuple[str, int]
    state: str
    send_queue: int
    receive_queue: int
    retransmits: int
    inode: int


def tcp_rows(root: Path = Path("/proc/net")) -> Iterator[SocketRow]:
    """Yield every TCP socket of this host."""
    for table in ("tcp", "tcp6"):
        try:
            lines = (root / table).read_text().splitlines()[1:]
        except FileNotFoundError:
            continue
        for line in lines:
            yield _row(line.split())


def _row(fields: List[str]) -> SocketRow:
    sent, received = fields[4].split(":")
    return SocketRow(
        local=_address(fields[1]),
        remote=_address(fields[2]),
        state=_STATES.get(fields[3], fields[3]),
        send_queue=int(sent, 16),
        receive_queue=int(received, 16),
        retransmits=int(fields[6], 16),
        inode=int(fields[9]),
    )


def _address(text: str) -> Tuple[str, int]:
    """Parse ``0100007F:08AE`` as 127.0.0.1, port 2222: words of 32 bits in the machine's own byte order."""
    words, port = text.split(":")
    packed = b"".join(struct.pack("=I", int(words[at : at + 8], 16)) for at in range(0, len(words), 8))
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed), int(port, 16)


_LISTEN = "LISTEN"
_FIRST, _END, _BLOCK = 10000, 1 << 16, 100

_own: Deque[int] = deque()  # the ports that this process may hand out
_bookings: List[socket.socket] = []


def can_listen(port: int, strictly: bool = False) -> bool:
    """Return whether a server could listen on this port of every interface, as TensorFlow's server does.

    Args:
      strictly: assume a server without SO_REUSEADDR; connections of an earlier process then block the port.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, not strictly)
        try:
            probe.bind(("0.0.0.0", port))
            probe.listen(1)
        except OSError:
            return False
    return True


def free_ports(count: int) -> List[int]:
    """Return ``count`` different ports that any server could listen on at this moment.

    This process reserves blocks of ports, and returns the least recently used ports of its own blocks. So no other
    launcher chooses the same port before a task listens on it.

    Raises:
      OSError: too few ports are free.
    """
    free: List[int] = []
    untried = len(_own)
    while len(free) < count:
        if untried == 0:
            block = _book_block()
            _own.extendleft(reversed(block))
            untried = len(block)
        port = _own.popleft()
        _own.append(port)
        untried -= 1
        if can_listen(port, strictly=True):
            free.append(port)
    return free


def _book_block() -> Sequence[int]:
    """Return a block that no other process has booked; where all are booked, a block that another process shares.

    Blocks lie outside the range of ports for outgoing connections, so that the kernel takes no port before its use.
    Where this range has nearly all ports, blocks lie inside the range.
    """
    import random  # slow to import: it loads OpenSSL, which no verb on a host needs

    first, last = outgoing_ports()
    blocks = _blocks(_FIRST, first) + _blocks(last + 1, _END) or _blocks(_FIRST, _END)
    others = [block for block in blocks if block[0] not in _own]
    if not others:
        raise OSError(errno.EADDRINUSE, "every port is in use")
    random.shuffle(others)
    return next(filter(_book, others), others[0])


def _book(block: Sequence[int]) -> bool:
    booking = book(f"launch-ports-{block[0]}")
    if booking is not None:
        _bookings.append(booking)
    return booking is not None


def book(name: str) -> Optional[socket.socket]:
    """Bind the abstract Unix socket ``name``; return None where another process has bound it.

    Only one process of the host can hold the name. The kernel frees the name, however that process ends.
    """
    booking = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        booking.bind(f"\0{name}")
    except OSError:
        booking.close()
        return None
    return booking


def _blocks(begin: int, end: int) -> List[Sequence[int]]:
    return [range(first, first + _BLOCK) for first in range(begin, end - _BLOCK + 1, _BLOCK)]


def outgoing_ports(root: Path = Path("/proc/sys/net/ipv4")) -> Tuple[int, int]:
    """Return the first and the last port of the kernel's range for outgoing connections."""
    try:
        first, last = (root / "ip_local_port_range").read_text().split()
        return int(first), int(last)
    except (OSError, ValueError):
        return 32768, 60999


def reserved_ports(root: Path = Path("/proc/sys/net/ipv4")) -> str:
    """Return the ports that the kernel never gives to outgoing connections, as ``8080,9148-9150``; "" if none."""
    try:
        return (root / "ip_local_reserved_ports").read_text().strip()
    except OSError:  # a container may hide it
        return ""


def ephemeral(ports: Iterable[int], outgoing: Tuple[int, int], reserved: str) -> List[int]:
    """Return those of ``ports`` that the kernel may give to an outgoing connection of any process.

    ``outgoing`` is the result of ``outgoing_ports``, and ``reserved`` that of ``reserved_ports``.
    """
    kept = [each.partition("-") for each in reserved.split(",") if each]
    spans = [(int(first), int(last or first)) for first, _, last in kept]
    return [
        port
        for port in ports
        if outgoing[0] <= port <= outgoing[1] and not any(first <= port <= last for first, last in spans)
    ]


def listeners() -> Dict[int, int]:
    """Return the socket inode of every listening TCP port: {port: inode}."""
    return {row.local[1]: row.inode for row in tcp_rows() if row.state == _LISTEN}


def listened_by(pids: Iterable[int]) -> List[int]:
    """Return the ports that these processes listen on."""
    held = held_sockets(pids)
    return sorted(port for port, inode in listeners().items() if inode in held)


def held_sockets(pids: Iterable[int]) -> Set[int]:
    """Return the inodes of the sockets that these processes hold."""
    links = {link for pid in pids for link in _handles(pid)}
    return {int(link[len("socket:[") : -1]) for link in links if link.startswith("socket:[")}


def holder(port: int) -> Optional[int]:
    """Return the pid of the process that listens on a port; None where this user can see no such process."""
    inode = listeners().get(port)
    link = f"socket:[{inode}]"
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        if link in _handles(pid):
            return pid
    return None


def _handles(pid: int) -> Iterator[str]:
    """Yield the targets of a process's open files, as ``/proc`` names them.

    An ended process, or a process of another user, yields no targets.
    """
    for fd in names_in(Path(f"/proc/{pid}/fd")):
        with contextlib.suppress(OSError):  # closed since
            yield os.readlink(f"/proc/{pid}/fd/{fd}")


def describe_holder(port: int) -> str:
    """Describe the process that holds a port, as in ``pid 42 (python train.py)``."""
    pid = holder(port)
    if pid is not None:
        return f"pid {pid} ({command_line(pid)[:120]})"
    return "a process of another user" if port in listeners() else "connections of an earlier process"


MOST_SHOWN = 4000  # rows of the table
STUCK = 20  # hanging connections in the summary
HANGING = ("SYN_SENT", "SYN_RECV", "LAST_ACK", "CLOSE_WAIT", "FIN_WAIT1")


class Connection(NamedTuple):
    """A socket, and the pid that holds it."""

    pid: int
    row: SocketRow

    @property
    def hangs(self) -> bool:
        """Return whether sent bytes had to be repeated, or the connection is only half open or half closed."""
        return self.row.retransmits > 0 or self.row.state in HANGING

    def __str__(self) -> str:
        row = self.row
        queues = f"{row.send_queue:>10} {row.receive_queue:>10} {row.retransmits:>4}"
        return f"{self.pid:>8} {row.state:12} {queues}  {_shown(row.local)} {_shown(row.remote)}"


def connections_of(pids: Iterable[int]) -> List[Connection]:
    """Return the connections that these processes hold, hanging ones first."""
    holders = {inode: pid for pid in pids for inode in held_sockets([pid])}
    found = [Connection(holders[row.inode], row) for row in tcp_rows() if row.inode in holders]
    return sorted(found, key=lambda each: (not each.hangs, each.pid, each.row.remote))


def connection_table(connections: List[Connection]) -> str:
    """Return a table with one line for each connection, at most ``MOST_SHOWN``."""
    head = f"{'pid':>8} {'state':12} {'to send':>10} {'to read':>10} {'retr':>4}  here there"
    more = [f"and {len(connections) - MOST_SHOWN} more"] if len(connections) > MOST_SHOWN else []
    return "\n".join([head, *map(str, connections[:MOST_SHOWN]), *more])


def connection_summary(connections: List[Connection]) -> Dict[str, Any]:
    """Return {"count", "hanging": number of hanging connections, "first": at most ``STUCK`` of them}."""
    hanging = [each for each in connections if each.hangs]
    first = [
        {"pid": each.pid, "state": each.row.state, "remote": _shown(each.row.remote), "to_send": each.row.send_queue}
        for each in hanging[:STUCK]
    ]
    return {"count": len(connections), "hanging": len(hanging), "first": first}


def _shown(address: Any) -> str:
    return f"[{address[0]}]:{address[1]}" if ":" in address[0] else f"{address[0]}:{address[1]}"
