"""The ports of this host, and the processes that listen on them."""

import contextlib
import errno
import os
import socket
from collections import deque
from pathlib import Path
from typing import Deque, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple

from launch.agent.linux.processes import command_line
from launch.agent.linux.procfs import names_in
from launch.agent.linux.tcp_sockets import tcp_rows

_LISTEN = "LISTEN"
_FIRST, _END, _BLOCK = 10000, 1 << 16, 100

_own: Deque[int] = deque()  # the ports that this process may hand out
_bookings: List[socket.socket] = []


def can_listen(port: int, strictly: bool = False) -> bool:
    """Return whether a server could listen on this port of every interface, as TensorFlow's does.

    Args:
      strictly: as a server without SO_REUSEADDR, from which connections of an earlier process keep the port.
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
    """Return ports that any server could listen on at this moment, all different.

    This process books blocks of ports, and hands out those of its own blocks, the longest unused first. So no other
    launcher chooses a port between this choice and the moment in which a task listens.

    Raises:
      OSError: there are not so many.
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
    """Return a block that no other process has booked; where all are booked, one that another may use as well.

    Blocks are outside of the range that the kernel takes the ports of outgoing connections from, so that none of them
    is taken by chance before it is used. Where that range is nearly all ports, they are in it.
    """
    import random  # loads OpenSSL, which no verb on a host needs

    first, last = _outgoing_ports()
    blocks = _blocks(_FIRST, first) + _blocks(last + 1, _END) or _blocks(_FIRST, _END)
    others = [block for block in blocks if block[0] not in _own]
    if not others:
        raise OSError(errno.EADDRINUSE, "every port is in use")
    random.shuffle(others)
    return next(filter(_book, others), others[0])


def _book(block: Sequence[int]) -> bool:
    booking = socket.socket(socket.AF_UNIX)
    try:
        booking.bind(f"\0launch-ports-{block[0]}")  # a name that the kernel frees when this process ends
    except OSError:
        booking.close()
        return False
    _bookings.append(booking)
    return True


def _blocks(begin: int, end: int) -> List[Sequence[int]]:
    return [range(first, first + _BLOCK) for first in range(begin, end - _BLOCK + 1, _BLOCK)]


def _outgoing_ports() -> Tuple[int, int]:
    """Return the first and the last port that the kernel takes for outgoing connections."""
    try:
        first, last = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
        return int(first), int(last)
    except (OSError, ValueError):
        return 32768, 60999


def listeners() -> Dict[int, int]:
    """Socket inode of every listening TCP port: {port: inode}."""
    return {row.local[1]: row.inode for row in tcp_rows() if row.state == _LISTEN}


def listened_by(pids: Iterable[int]) -> List[int]:
    """The ports that these processes listen on."""
    held = held_sockets(pids)
    return sorted(port for port, inode in listeners().items() if inode in held)


def held_sockets(pids: Iterable[int]) -> Set[int]:
    """The inodes of the sockets that these processes hold."""
    links = {link for pid in pids for link in _handles(pid)}
    return {int(link[len("socket:[") : -1]) for link in links if link.startswith("socket:[")}


def holder(port: int) -> Optional[int]:
    """The pid that listens on a port; None where nobody does, or nobody that this user may see."""
    inode = listeners().get(port)
    link = f"socket:[{inode}]"
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        if link in _handles(pid):
            return pid
    return None


def _handles(pid: int) -> Iterator[str]:
    """Yield the targets of a process's open files, as ``/proc`` names them.

    A process that is gone, or another user's, has none.
    """
    for fd in names_in(Path(f"/proc/{pid}/fd")):
        with contextlib.suppress(OSError):  # closed since
            yield os.readlink(f"/proc/{pid}/fd/{fd}")


def describe_holder(port: int) -> str:
    """``pid 42 (python train.py)``, for a port that is taken."""
    pid = holder(port)
    if pid is not None:
        return f"pid {pid} ({command_line(pid)[:120]})"
    return "a process of another user" if port in listeners() else "connections of an earlier process"
