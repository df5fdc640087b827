"""The ports of this host, and the processes that listen on them."""

import contextlib
import os
import socket
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, Optional, Set

from launch.agent.linux.processes import command_line
from launch.agent.linux.procfs import names_in
from launch.agent.linux.tcp_sockets import tcp_rows

_LISTEN = "LISTEN"


def can_listen(port: int) -> bool:
    """Return whether a server could listen on this port of every interface, as TensorFlow's does."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", port))
            probe.listen(1)
        except OSError:
            return False
    return True


def free_ports(count: int) -> List[int]:
    """Ports that nobody listens on at this moment, all different.

    They are below the range that the kernel takes the ports of outgoing connections
    from, so that none of them is taken by chance before it is used.
    """
    import random  # loads OpenSSL, which no verb on a host needs

    first, last = 10000, _first_outgoing_port() - 1
    ports = random.sample(range(first, last + 1), last - first + 1)
    free = (port for port in ports if can_listen(port))
    return [next(free) for _ in range(count)]


def _first_outgoing_port() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError):
        return 32768


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
